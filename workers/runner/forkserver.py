"""The fork server: imports the libraries of runners once and forks runners on request.

Command line: `python -m workers.runner.forkserver --socket N --parent PID --environment JSON`. The imports
take 2 to 3 seconds of CPU; a fork takes about 20 ms and shares their memory. Libraries read the process
environment when they are imported, so there is one fork server for each `Environment`. It never starts a JAX
backend, because a fork does not inherit threads, and it never runs a task. `jobs.contracts.fork` defines its
messages.
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

from jobs.contracts.fork import MAX_DATAGRAM, STREAMS, ForkRequest
from workers.runner.environment import Environment
from workers.runner.parent_death import die_with_parent, set_process_name
from workers.runner.record import cpu_model, versions
from workers.runner.registry import modules_with_jax


class Server:
    """Forks runners until the supervisor closes the socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        # Python writes a byte to `_waker` for each signal, so that `select` returns when a runner has ended.
        self._woken, self._waker = os.pipe()
        # `set_wakeup_fd` requires this: a full pipe must not block a signal handler.
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waker, False)

    def serve(self) -> None:
        """Answer requests until the socket is closed."""
        # A handler of Python's is necessary for the wake-up: by default the kernel drops SIGCHLD.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker)
        self._send(ready=os.getpid())
        while True:
            readable, _, _ = select.select([self._connection.fileno(), self._woken], [], [])
            # Reaping only here, never in a signal handler: an end cannot be reported before its `forked`.
            if self._woken in readable:
                os.read(self._woken, MAX_DATAGRAM)
                self._reap()
            if self._connection.fileno() in readable and not self._answer():
                return

    def _answer(self) -> bool:
        message, descriptors, _, _ = socket.recv_fds(self._connection, MAX_DATAGRAM, len(STREAMS))
        if not message:
            return False
        try:
            # The kernel drops descriptors that this process may not open, without an error.
            if len(descriptors) < len(STREAMS):
                raise OSError(errno.EMFILE, "not all descriptors were received")
            self._send(forked=self._fork(ForkRequest.model_validate_json(message), descriptors))
        # A failed fork must not end the server, which would end its other runners.
        except (OSError, ValueError) as error:
            self._send(failed=getattr(error, "errno", None) or errno.EIO)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _fork(self, request: ForkRequest, descriptors: Sequence[int]) -> int:
        """Fork a runner and return its pid.

        It leads its own session, so it can be killed with its descendants.
        """
        parent = os.getpid()
        ready_read, ready_write = os.pipe()
        with os.fdopen(ready_read, "rb") as ready:
            with os.fdopen(ready_write, "wb"):
                pid = os.fork()
                if pid == 0:
                    self._run_child(request, descriptors, parent=parent, ready=(ready_read, ready_write))
            # Returns when the child has called `setsid` and closed the pipe, or has died. Before that, the
            # supervisor could not kill the session of the runner.
            ready.read()
        return pid

    def _reap(self) -> None:
        # Several children that end together may cause one signal only.
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._send(ended=pid, status=os.waitstatus_to_exitcode(status))

    def _send(self, **message: int) -> None:
        self._connection.send(json.dumps(message).encode())

    def _run_child(
        self, request: ForkRequest, descriptors: Sequence[int], *, parent: int, ready: Sequence[int]
    ) -> NoReturn:
        """Run the requested runner in the child process."""
        status = 1
        try:
            os.setsid()
            for descriptor in ready:
                os.close(descriptor)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            # While a runner held this socket, the supervisor would not see its end when the server dies.
            self._connection.close()
            os.close(self._woken)
            os.close(self._waker)
            status = run(request, descriptors, parent)
        # The child must never return to the loop of the server, as a second server on the same socket.
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            os._exit(status)


def run(request: ForkRequest, descriptors: Sequence[int], parent: int) -> int:
    """Run the requested module as a new interpreter would, and return its exit status."""
    set_process_name("ty-runner")
    *streams, events = descriptors
    for target, descriptor in enumerate(streams):
        os.dup2(descriptor, target)
        os.close(descriptor)
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    # As for `python -m`: the first entry is the working folder.
    sys.path[0] = request.folder
    sys.argv[1:] = ["--events-fd", str(events), "--parent", str(parent)]
    # Python reseeds only its own generator after a fork: without this, all runners draw the same numbers.
    sys.modules["numpy"].random.seed()
    try:
        runpy.run_module(request.module, run_name="__main__")
    # As the interpreter does: a text is printed to stderr and makes the status 1.
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def preload(environment: Environment) -> None:
    """Import the libraries of runners, in the environment that they will have.

    Raises:
        RuntimeError: the imports started a JAX backend, whose threads forks would lack.
    """
    environment.apply()
    from workers.runner.libraries import import_keras

    import_keras()
    importlib.import_module("workers.runner.serve")
    for module in (*modules_with_jax(), "workers.runner.standby", "workers.engine.tasks.warmup"):
        importlib.import_module(module)
    # Their results are cached, and forks inherit the caches.
    importlib.import_module("workers.engine.compiled.aot").static_fingerprint()
    versions()
    cpu_model()
    # Private, because JAX has no public function that answers this without starting a backend.
    from jax._src.xla_bridge import backends_are_initialized

    if backends_are_initialized():
        raise RuntimeError("an import started a JAX backend, so runners cannot be forked")
    gc.collect()
    # Garbage collection writes to the objects that it visits, so children would copy the shared pages.
    gc.freeze()


def main() -> None:
    """Import the libraries and serve fork requests."""
    parser = argparse.ArgumentParser(prog="workers.runner.forkserver")
    parser.add_argument("--socket", type=int, required=True, help="inherited descriptor of the socket")
    parser.add_argument(
        "--parent", type=int, required=True, help="pid of the supervisor, with which this process dies"
    )
    parser.add_argument("--environment", required=True, help="the `Environment` of all runners, as JSON")
    options = parser.parse_args()
    die_with_parent(options.parent)
    set_process_name("ty-forkserver")
    connection = socket.socket(fileno=options.socket)
    connection.set_inheritable(False)
    preload(Environment(**json.loads(options.environment)))
    # The supervisor has closed the socket.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        Server(connection).serve()
    os._exit(0)


if __name__ == "__main__":
    main()
