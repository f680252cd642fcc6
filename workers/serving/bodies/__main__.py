"""Command line for a body worker: `python -m workers.serving.bodies`."""

import argparse
import logging
import signal
import socket
import sys
from collections.abc import Iterable

from workers.model_process.frames import InvalidFrame
from workers.serving.bodies.worker import serve
from workers.serving.protocols.protocol import Protocol
from workers.serving.protocols.table import PROTOCOLS
from workers.system.kernel import set_process_name
from workers.system.parent_death import die_with_parent


def main(protocols: Iterable[Protocol] = PROTOCOLS) -> int:
    """Answer frames from the inherited socket until it is closed; return the exit status."""
    parser = argparse.ArgumentParser("python -m workers.serving.bodies")
    parser.add_argument("--socket", type=int, required=True, help="inherited descriptor of a unix socket")
    parser.add_argument("--parent", type=int, required=True, help="process id of the router")
    arguments = parser.parse_args()
    die_with_parent(arguments.parent)
    set_process_name("ty-bodies")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    try:
        serve(socket.socket(fileno=arguments.socket), protocols)
    except (ConnectionError, InvalidFrame):
        logging.getLogger("trainyard.serving").info("the connection to the router ended")
    return 0


if __name__ == "__main__":
    sys.exit(main())
