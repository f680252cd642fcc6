"""Command line of a model child: `python -m workers.serving.child`.

Without `--model` it is a spare child: it does its imports, which take longest, and waits for the router to
send a model.
"""

import argparse
import logging
import os
import signal
import socket
import sys
from pathlib import Path

# Keras reads its backend when it is imported, so it is set here instead of by the router
os.environ["KERAS_BACKEND"] = "jax"

from workers.serving.child.parent_death import die_with_parent
from workers.serving.frames import InvalidFrame, write_frame

logger = logging.getLogger("trainyard.serving.child")

UNUSED_LIBRARIES = ("sklearn", "pandas")
"""Keras imports these if they are installed.

No served model needs them: saves 1 s of CPU and 110 MB a child.
"""


def main() -> int:
    """Serve one model over the inherited socket; return the exit status."""
    given = _arguments()
    die_with_parent(given.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the router handles Ctrl-C and ends its children
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logging.getLogger("jax").setLevel(logging.WARNING)  # it logs every platform that is not available
    connection = socket.socket(fileno=given.socket)
    os.environ["NPROC"] = str(given.threads)  # the size of XLA's thread pool on the CPU

    for name in UNUSED_LIBRARIES:
        sys.modules[name] = None  # type: ignore[assignment]  # makes an import raise ImportError

    from workers.serving.child.serve import (
        load_and_serve,  # imports JAX, so its environment must be set before
    )

    try:
        load_and_serve(connection, model=given.model, cache=given.compile_cache, max_batch=given.max_batch)
    except (ConnectionError, InvalidFrame) as error:
        logger.info("the connection to the router ended: %s", error)
    except Exception as error:
        logger.exception("the model could not be served")
        write_frame(connection, {"op": "failed", "error": f"{type(error).__name__}: {error}"[:2000]})
        return 1
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m workers.serving.child")
    parser.add_argument("--model", type=Path, help="path of a verified .keras file")
    parser.add_argument("--socket", type=int, required=True, help="inherited descriptor of a unix socket")
    parser.add_argument("--parent", type=int, required=True, help="process id of the router")
    parser.add_argument("--compile-cache", type=Path, required=True)
    parser.add_argument("--max-batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
