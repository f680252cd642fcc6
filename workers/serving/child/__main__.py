"""Command line for a model child: `python -m workers.serving.child`.

With `--fork-server` the process serves no model: it does the imports once, which take most of a child's time
and memory, and forks children for the router.
"""

import argparse
import contextlib
import importlib
import json
import logging
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

# Keras reads its backend when it is imported, so it is set before everything else.
os.environ["KERAS_BACKEND"] = "jax"

from workers.confinement.forking.server import Server, check_forkable
from workers.engine.errors import EngineError, RefusedInput
from workers.model_process.errors import LACKS_MEMORY, TOO_LARGE, plain_text
from workers.model_process.frames import InvalidFrame
from workers.model_process.library_messages import plain_message
from workers.runner.libraries import import_for_code, import_keras, lasting_imports
from workers.serving.child.connection import Connection
from workers.system.kernel import set_process_name
from workers.system.parent_death import die_with_parent, ignore_group_signals, lead_group_of_session

logger = logging.getLogger("trainyard.serving.child")
_NEEDED = (
    "workers.serving.child.serve",
    # JAX imports these only when it is used.
    "jax.experimental.multihost_utils",
    "jaxlib.mlir.dialects.mhlo",
    # For versions with user code.
    "workers.engine.models.own_objects",
    "workers.confinement.forking.into_sandbox",
)
"""The modules of a child."""


def main() -> int:
    """Serve one model, or forks, over the inherited socket; return the exit status."""
    arguments = _arguments()
    # A sandbox has a session of its own, and ends with the router.
    if arguments.code is None:
        lead_group_of_session()
        die_with_parent(arguments.parent)
    # The router, or the worker, ends its children after their last requests.
    ignore_group_signals()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    # It logs every platform that is not available.
    logging.getLogger("jax").setLevel(logging.WARNING)
    connection = socket.socket(fileno=arguments.socket)
    import_keras()
    if arguments.fork_server:
        return _serve_forks(connection, arguments)
    return _serve_model(connection, arguments)


def _serve_forks(connection: socket.socket, arguments: argparse.Namespace) -> int:
    """Fork model children, which become children of the router, until the router closes the connection.

    Those in a sandbox may begin like the others: this process executes no model and no user code, and has
    no secret.
    """

    def run(request: dict[str, bool], descriptors: Sequence[int], parent: int) -> int:
        if "into_sandbox" in request:
            enter_sandbox(descriptors, parent)
        die_with_parent(parent)
        return _serve_model(socket.socket(fileno=descriptors[0]), arguments)

    def prepare(request: dict[str, bool]) -> None:
        if "into_sandbox" in request:
            import_for_code()

    set_process_name("ty-modelforks")
    # Garbage collection writes to the objects that it visits, so forks would copy the shared pages.
    with lasting_imports():
        for module in _NEEDED:
            importlib.import_module(module)
    from jobs.messages.fork import MOST_DESCRIPTORS
    from workers.confinement.forking.into_sandbox import enter_sandbox

    check_forkable()
    # The router has closed the connection.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        Server(
            connection,
            streams=MOST_DESCRIPTORS,
            parse=json.loads,
            run=run,
            prepare=prepare,
            detached=True,
        ).serve()
    return 0


def _serve_model(connection: socket.socket, arguments: argparse.Namespace) -> int:
    """Serve one model over a connection to the router; return the exit status."""
    set_process_name("ty-model")
    # Imports JAX, whose environment is complete now.
    from workers.serving.child.serve import load_and_serve

    frames = Connection(connection)
    try:
        load_and_serve(
            frames,
            code=arguments.code,
            compiled=arguments.compile_cache,
            max_batch=arguments.max_batch,
            max_programs=arguments.max_programs,
        )
    except (ConnectionError, InvalidFrame) as error:
        logger.info("the connection to the router ended: %s", error)
    # User code and any layer may raise anything, and the router reports the reason to the dashboard.
    except Exception as error:
        if isinstance(error, RefusedInput):
            logger.warning("the model could not be served by this process: %s", error)
        else:
            logger.exception("the model could not be served")
        reason = plain_text(_described(error, arguments.code), limit=500)
        frames.send({"op": "failed", "error": reason, "kind": _kind_of(error)})
        return 1
    return 0


def _described(error: Exception, code: Path | None) -> str:
    """Return an error in one line, with the error in user code from which it came."""
    if isinstance(error, EngineError):
        return str(error)
    text = f"{type(error).__name__}: {plain_message(error)}"
    if code is None:
        return text
    from workers.engine.models.own_code.failures import cause_of

    return text if error.__cause__ is None else f"{text}: {cause_of(error.__cause__)}"


def _kind_of(error: Exception) -> str:
    """Return how a load failed: the router loads a version that lacks memory on its mesh, if it has one."""
    from workers.engine.models.devices.memory import LacksMemory, LargerThanDevice

    if isinstance(error, LargerThanDevice):
        return TOO_LARGE
    return LACKS_MEMORY if isinstance(error, LacksMemory) else "internal"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m workers.serving.child")
    parser.add_argument("--fork-server", action="store_true", help="fork children instead of serving a model")
    parser.add_argument("--socket", type=int, required=True, help="inherited descriptor of a unix socket")
    parser.add_argument("--parent", type=int, help="process id of the router; not in a sandbox")
    parser.add_argument(
        "--code", type=Path, help="folder of the code that the model needs; only in a sandbox"
    )
    parser.add_argument("--compile-cache", type=Path)
    parser.add_argument("--max-batch", type=int, default=64)
    parser.add_argument("--max-programs", type=int, default=256)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
