"""The prediction server with model processes whose devices have little memory: `LIMIT` bytes each.

Each model process has at most `MOST` simulated CPU devices. It writes their number, and the most bytes that
one of them had in each stage, into the folder `seen` of the server's home, under its process id. While that
folder has a file `SHORT`, a process with one device lacks memory for every batch.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

LIMIT = 1 << 20
MOST = 8
SHORT = "short-of-memory"
_CHILD = "tests.serving.processes.small_devices"


def run_server() -> int:
    """Run the server as `python -m workers.serving` does, with these model processes."""
    from workers.serving import __main__ as server
    from workers.serving.versions.child_process import ChildCommand

    shared = ChildCommand._shared

    def with_this_child(command: ChildCommand) -> list[str]:
        return [_CHILD if part == "workers.serving.child" else part for part in shared(command)]

    with patch.object(ChildCommand, "_shared", with_this_child):
        return server.main()


def run_child() -> int:
    """Run a model process, or one that forks them."""
    from workers.serving.child import __main__ as child

    serve = child._serve_model

    def limit_and_serve(*arguments: Any) -> int:
        _limit_devices()
        return serve(*arguments)

    with patch.object(child, "_serve_model", limit_and_serve):
        return child.main()


def _limit_devices() -> None:
    """Limit the devices of this process, and record their bytes, until it ends."""
    import jax

    from tests.engine.processes.live_bytes import LiveBytes
    from workers.engine.models.devices import memory
    from workers.serving.child import mesh
    from workers.serving.child.programs import Programs

    live = LiveBytes()
    live.watching().__enter__()
    call = Programs._call

    def call_and_see(*arguments: Any) -> Any:
        if len(jax.devices()) == 1 and (_folder() / SHORT).exists():
            raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4096 bytes.")
        outputs = call(*arguments)
        live.see("batch")
        _write({"devices": len(jax.devices()), "most": live.most})
        return outputs

    patch.object(memory, "device_limit", lambda device: LIMIT).start()
    patch.object(mesh, "MOST_SIMULATED", MOST).start()
    patch.object(Programs, "_call", call_and_see).start()


def _write(seen: dict[str, object]) -> None:
    folder = _folder()
    folder.mkdir(exist_ok=True)
    new = folder / f"{os.getpid()}.new"
    new.write_text(json.dumps(seen))
    new.replace(folder / f"{os.getpid()}.json")


def _folder() -> Path:
    # The folder of compiled programs is in the server's home.
    return Path(sys.argv[sys.argv.index("--compile-cache") + 1]).parent / "seen"


if __name__ == "__main__":
    sys.exit(run_server() if "--dashboard" in sys.argv else run_child())
