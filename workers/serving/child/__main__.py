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

# Keras reads its backend when it is imported, so it is set before everything else.
os.environ["KERAS_BACKEND"] = "jax"

from workers.runner.libraries import import_keras
from workers.runner.parent_death import die_with_parent
from workers.serving.child.connection import Connection
from workers.serving.errors import plain_text
from workers.serving.frames import InvalidFrame

logger = logging.getLogger("trainyard.serving.child")


def main() -> int:
    """Serve one model over the inherited socket; return the exit status."""
    given = _arguments()
    die_with_parent(given.parent)
    # The router handles Ctrl-C, and ends its children after their last requests.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    # It logs every platform that is not available.
    logging.getLogger("jax").setLevel(logging.WARNING)
    connection = Connection(socket.socket(fileno=given.socket))
    # The size of XLA's thread pool on the CPU.
    os.environ["NPROC"] = str(given.threads)
    import_keras()
    # Imports JAX, so its environment must be set before.
    from workers.serving.child.serve import load_and_serve

    try:
        load_and_serve(
            connection,
            model=given.model,
            cache=given.compile_cache,
            max_batch=given.max_batch,
            max_programs=given.max_programs,
        )
    except (ConnectionError, InvalidFrame) as error:
        logger.info("the connection to the router ended: %s", error)
    except Exception as error:
        logger.exception("the model could not be served")
        reason = plain_text(f"{type(error).__name__}: {error}", limit=500)
        connection.send({"op": "failed", "error": reason})
        return 1
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m workers.serving.child")
    parser.add_argument("--model", type=Path, help="path of a verified .keras file")
    parser.add_argument("--socket", type=int, required=True, help="inherited descriptor of a unix socket")
    parser.add_argument("--parent", type=int, required=True, help="process id of the router")
    parser.add_argument("--compile-cache", type=Path, required=True)
    parser.add_argument("--max-batch", type=int, default=64)
    parser.add_argument("--max-programs", type=int, default=256)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
