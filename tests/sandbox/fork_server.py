"""A fork server that imports little, for tests: `python -m tests.sandbox.fork_server`."""

import argparse
import contextlib
import importlib
import json
import os
import socket
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from workers.confinement.forking.into_sandbox import enter_sandbox
from workers.confinement.forking.server import Server
from workers.system.kernel import become_subreaper
from workers.system.parent_death import die_with_parent

COMMAND = (sys.executable, "-m", "tests.sandbox.fork_server")
REFUSE = "--refuse-joining"
MOST_DESCRIPTORS = 5


def run(request: dict[str, Any], descriptors: Sequence[int], parent: int) -> int:
    if "into_sandbox" in request:
        enter_sandbox(descriptors, parent)
    # For ordinary runners, which need more imports.
    from jobs.messages.fork import FORK_REQUEST
    from workers.runner import forkserver

    return forkserver.run(FORK_REQUEST.validate_python(request), descriptors, parent)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument(REFUSE, action="store_true")
    parser.add_argument("modules", nargs="*")
    options = parser.parse_args()
    die_with_parent(options.parent)
    become_subreaper()
    connection = socket.socket(fileno=options.socket)
    connection.set_inheritable(False)
    # Runs at the levels without a root of their own may not be able to read the Python of the tests.
    for module in ("tests.sandbox.hostile", "encodings.idna", *options.modules):
        importlib.import_module(module)
    for module in options.modules:
        # A module that is run must not be imported before.
        del sys.modules[module]
    if options.refuse_joining:
        os.setns = _refuse  # type: ignore[assignment]
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        Server(connection, streams=MOST_DESCRIPTORS, parse=json.loads, run=run).serve()
    os._exit(0)


def _refuse(*_: int) -> NoReturn:
    raise PermissionError


if __name__ == "__main__":
    main()
