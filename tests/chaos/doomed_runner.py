"""The real runner, which kills itself at a kill point on request.

A request is a file `<home>/compile-cache/doom/<kill point>`: of the folders that other processes can write, a
runner with a user of its own sees only those of the compile cache. The first runner that passes the point
deletes the file and dies of SIGKILL, so each request kills one runner once. Kill points are defined in
workers/engine. In a home without that folder it is the unchanged runner.
"""

import os
import shutil
import signal
from pathlib import Path

from workers.engine import killpoint
from workers.engine.training import checkpointing
from workers.runner.__main__ import main

DOOM = Path("compile-cache", "doom")
POINTS = (
    "checkpoint.begun",
    "checkpoint.arrays",
    "checkpoint.history",
    "checkpoint.state",
    "checkpoint.manifest",
    "checkpoint.renamed",
)


def installation_home() -> Path:
    """Return the installation's home: a runner's own is below `<home>/nodes`."""
    below = Path(os.environ["HOME"]).parents
    return next(folder.parent for folder in below if folder.name == "nodes")


def accept_requests(home: Path) -> Path:
    """Create the request folder in a home. Every runner, whatever its user, may delete requests."""
    folder = home / DOOM
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)
    return folder


def refuse_requests(home: Path) -> None:
    """Let runners that start later be the unchanged one."""
    shutil.rmtree(home / DOOM)


def die_if_requested(name: str) -> None:
    """Die if there is a request for this kill point."""
    try:
        (installation_home() / DOOM / name).unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def run() -> None:
    """Run the runner, checking for requests at every kill point. A sandbox hides them."""
    if not any(folder.name == "nodes" for folder in Path(os.environ["HOME"]).parents):
        main()
        return
    killpoint.handler = die_if_requested
    if (installation_home() / DOOM).is_dir():
        os.environ[checkpointing.INTERVAL_VARIABLE] = "0"  # after each epoch: more points to die at
    main()


if __name__ == "__main__":
    run()
