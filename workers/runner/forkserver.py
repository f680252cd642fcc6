"""`python -m workers.runner.forkserver --socket N --parent PID …`: imports what runners need, and forks them.

The imports take 2 to 3 seconds of CPU; a fork takes some 20 ms and shares their memory. What is imported here
reads the process environment once, so there is one fork server for each `Environment`. It never starts a JAX
backend, whose threads no fork would inherit, and never runs a task. `jobs.spec.fork` is its language.
"""

import argparse
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import traceback
from collections.abc import Sequence

from jobs.spec.fork import LARGEST, STREAMS, ForkRequest
from workers.runner.environment import Environment
from workers.runner.leash import name_process, tie_to_parent
from workers.runner.registry import ENGINE, WITHOUT_JAX


class ForkServer:
    """Forks until the supervisor closes the socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._woken, waker = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(waker, False)
        self._waker = waker

    def serve(self) -> None:
        """Answer requests; returns when there will be no more."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker)
        self._tell(ready=os.getpid())
        while True:
            readable, _, _ = select.select([self._connection.fileno(), self._woken], [], [])
            if self._woken in readable:
                os.read(self._woken, LARGEST)
                self._reap()
            if self._connection.fileno() in readable and not self._answer():
                return

    def _answer(self) -> bool:
        message, descriptors, _, _ = socket.recv_fds(self._connection, LARGEST, len(STREAMS))
        if not message:
            return False
        request = ForkRequest.model_validate_json(message)
        ourselves = os.getpid()
        leads, leading = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.close(leading)
            os.close(leads)
            self._leave_to_child()
            be_runner(request, descriptors, parent=ourselves)
        for descriptor in (leading, *descriptors):
            os.close(descriptor)
        os.read(
            leads, 1
        )  # the end of file: it leads its session, by which it can be killed with all it starts
        os.close(leads)
        self._tell(forked=pid)
        return True

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._tell(ended=pid, status=os.waitstatus_to_exitcode(status))

    def _tell(self, **what: int) -> None:
        self._connection.send(json.dumps(what).encode())

    def _leave_to_child(self) -> None:
        """Keep nothing of the server in a child: its socket must close when the server dies."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._connection.close()
        os.close(self._woken)
        os.close(self._waker)


def be_runner(request: ForkRequest, descriptors: Sequence[int], *, parent: int) -> None:
    """Become the runner that was asked for; never returns."""
    status = 1
    try:
        name_process("ty-runner")
        *streams, events = descriptors
        for target, descriptor in enumerate(streams):
            os.dup2(descriptor, target)
            os.close(descriptor)
        os.chdir(request.folder)
        os.environ.clear()
        os.environ.update(request.environment)
        sys.argv[1:] = ["--events-fd", str(events), "--parent", str(parent)]
        runpy.run_module(request.module, run_name="__main__")
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
    except BaseException:  # noqa: BLE001  a fork must not go on as a second server
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def preload(environment: Environment) -> None:
    """Import what runners need, in the environment that they will have."""
    environment.apply()
    from workers.runner.libraries import import_keras

    import_keras()
    importlib.import_module("workers.runner.serve")
    for kind in ENGINE.keys() - WITHOUT_JAX:
        importlib.import_module(ENGINE[kind])
    gc.collect()
    gc.freeze()  # what is imported stays: no collection of a child writes into the shared pages


def main() -> None:
    """Import, say that we are ready, fork on request."""
    parser = argparse.ArgumentParser(prog="workers.runner.forkserver")
    parser.add_argument("--socket", type=int, required=True, help="inherited descriptor of the socket")
    parser.add_argument("--parent", type=int, required=True, help="pid of the supervisor: its death is ours")
    parser.add_argument("--environment", required=True, help="the `Environment` of all its runners, as JSON")
    options = parser.parse_args()
    tie_to_parent(options.parent)
    name_process("ty-forkserver")
    connection = socket.socket(fileno=options.socket)
    connection.set_inheritable(False)
    preload(Environment(**json.loads(options.environment)))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the supervisor has let go of us
        ForkServer(connection).serve()
    os._exit(0)


if __name__ == "__main__":
    main()
