"""The real runner, which dies at a named place once somebody has ordered it.

An order is a file `<home>/doom/<kill point>`. Whoever passes that point first takes it and dies of SIGKILL,
so each order kills one runner once, warm or new. Kill points stand in workers/engine. In a home without
that folder it is the real runner and no more.
"""

import os
import signal
from pathlib import Path

from workers.engine import killpoint
from workers.engine.training import checkpointing
from workers.runner.__main__ import main

DOOM = "doom"
POINTS = (
    "checkpoint.begun",
    "checkpoint.arrays",
    "checkpoint.state",
    "checkpoint.manifest",
    "checkpoint.renamed",
)


def home_of_the_yard() -> Path:
    """Return the yard's home: a runner's own is `<home>/nodes/<name>/runners/<number>`."""
    return Path(os.environ["HOME"]).parents[3]


def die_if_ordered(name: str) -> None:
    """Take the order for this place, if there is one, and obey."""
    try:
        (home_of_the_yard() / DOOM / name).unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def run() -> None:
    """Be the runner, which asks for orders at every kill point."""
    killpoint.decide = die_if_ordered
    if (home_of_the_yard() / DOOM).is_dir():
        os.environ[checkpointing.INTERVAL] = "0"  # a checkpoint each epoch: many moments to die in
    main()


if __name__ == "__main__":
    run()
