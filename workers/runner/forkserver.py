"""`python -m workers.runner.forkserver --socket N --parent PID …`: imports what runners need, and forks them.

The imports take 2 to 3 seconds of CPU; a fork takes some 20 ms and shares their memory. What is imported here
reads the process environment once, so there is one fork server for each `Environment`. It never starts a JAX
backend, whose threads no fork would inherit, and never runs a task. `jobs.contracts.fork` is its language.
"""

import argparse
import contextlib
import errno
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
from typing import NoReturn

from jobs.contracts.fork import LARGEST, STREAMS, ForkRequest
from workers.runner.environment import Environment
from workers.runner.parent_death import name_process, tie_to_parent
from workers.runner.record import cpu_model, versions
from workers.runner.registry import ENGINE, WITHOUT_JAX


class Server:
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
        try:
            if len(descriptors) < len(STREAMS):
                raise OSError(errno.EMFILE, "not all descriptors came through")
            self._tell(forked=self._fork(ForkRequest.model_validate_json(message), descriptors))
        except (
            OSError,
            ValueError,
        ) as error:  # the runners there are must not pay for the one that cannot be
            self._tell(failed=getattr(error, "errno", None) or errno.EIO)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _fork(self, request: ForkRequest, descriptors: Sequence[int]) -> int:
        """Return the pid of a new runner. It leads its session, so it can be killed with all it starts."""
        ourselves = os.getpid()
        leads, leading = os.pipe()
        with os.fdopen(leads, "rb") as session:
            with os.fdopen(leading, "wb"):
                pid = os.fork()
                if pid == 0:
                    self._be_runner(request, descriptors, parent=ourselves, leading=(leads, leading))
            session.read()  # to its end: the child closes it, or dies
        return pid

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

    def _be_runner(
        self, request: ForkRequest, descriptors: Sequence[int], *, parent: int, leading: Sequence[int]
    ) -> NoReturn:
        """Become the runner that was asked for."""
        status = 1
        try:
            os.setsid()
            for descriptor in leading:
                os.close(descriptor)
            self._forget_server()
            status = run(request, descriptors, parent)
        except BaseException:  # noqa: BLE001  a fork must not go on as a second server
            traceback.print_exc()
        finally:
            os._exit(status)

    def _forget_server(self) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._connection.close()  # so that it closes when the server dies
        os.close(self._woken)
        os.close(self._waker)


def run(request: ForkRequest, descriptors: Sequence[int], parent: int) -> int:
    """Run the module that was asked for as an interpreter of its own would; return its exit status."""
    name_process("ty-runner")
    *streams, events = descriptors
    for target, descriptor in enumerate(streams):
        os.dup2(descriptor, target)
        os.close(descriptor)
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    sys.path[0] = request.folder
    sys.argv[1:] = ["--events-fd", str(events), "--parent", str(parent)]
    sys.modules["numpy"].random.seed()  # Python's own generator does so by itself
    try:
        runpy.run_module(request.module, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def preload(environment: Environment) -> None:
    """Import what runners need, in the environment that they will have.

    Raises:
        RuntimeError: the imports have started a JAX backend, whose threads forks would lack.
    """
    environment.apply()
    from workers.runner.libraries import import_keras

    import_keras()
    importlib.import_module("workers.runner.serve")
    for kind in ENGINE.keys() - WITHOUT_JAX:
        importlib.import_module(ENGINE[kind])
    for module in ("workers.runner.standby", "workers.engine.tasks.warmup"):
        importlib.import_module(module)
    importlib.import_module("workers.engine.compiled.aot").constants()
    versions()
    cpu_model()
    from jax._src.xla_bridge import backends_are_initialized

    if backends_are_initialized():
        raise RuntimeError("importing what runners need has started a JAX backend: runners cannot be forked")
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
        Server(connection).serve()
    os._exit(0)


if __name__ == "__main__":
    main()
