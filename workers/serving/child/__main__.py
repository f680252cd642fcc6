"""`python -m workers.serving.child`: load one model, warm it, answer frames until the router is gone.

Without `--model` it does its imports, which take longest, and waits for the router to name one: a spare.
"""

import argparse
import logging
import os
import signal
import socket
import sys
from pathlib import Path

# Keras reads its backend when it is imported, XLA its flags: the router's environment does not decide them
os.environ["KERAS_BACKEND"] = "jax"

from workers.serving.child.lifeline import die_with_parent
from workers.serving.wire import BrokenFrame, write_frame

logger = logging.getLogger("trainyard.serving.child")

UNUSED = ("sklearn", "pandas")
"""Keras imports both where it finds them, no served model needs either: 1 s of CPU and 110 MB a child."""


def main() -> int:
    """Serve one model over the inherited socket; return the exit status."""
    given = _arguments()
    die_with_parent(given.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is the router's to handle
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logging.getLogger("jax").setLevel(logging.WARNING)  # it tells of every platform that this machine is not
    connection = socket.socket(fileno=given.socket)
    os.environ["NPROC"] = str(given.threads)  # the size of XLA's thread pool on the CPU

    for name in UNUSED:
        sys.modules[name] = None  # type: ignore[assignment]  # to an import: not installed

    from workers.serving.child.serve import load_and_serve  # imports JAX: only now is its environment set

    try:
        load_and_serve(connection, model=given.model, cache=given.compile_cache, max_batch=given.max_batch)
    except (ConnectionError, BrokenFrame) as gone:
        logger.info("the router is gone: %s", gone)
    except Exception as error:
        logger.exception("the model cannot be served")
        write_frame(connection, {"op": "failed", "error": f"{type(error).__name__}: {error}"[:2000]})
        return 1
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m workers.serving.child")
    parser.add_argument("--model", type=Path, help="a .keras file whose digest was verified")
    parser.add_argument("--socket", type=int, required=True, help="inherited descriptor of a unix socket")
    parser.add_argument("--parent", type=int, required=True, help="process id of the router")
    parser.add_argument("--compile-cache", type=Path, required=True)
    parser.add_argument("--max-batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
