"""The forking side of a fork server: answers requests from `workers.confinement.forking.client`.

A fork server does its children's imports once, which takes 2 to 3 seconds of CPU; a fork takes about
20 ms and shares their memory. It never starts a JAX backend, because a fork does not inherit threads.
`jobs.messages.fork` defines the messages.
"""

import errno
import json
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import NoReturn

from jobs.messages.fork import MAX_DATAGRAM
from workers.system.parent_death import accept_group_signals, ignore_group_signals


class Server[Request]:
    """Forks children until the socket is closed.

    A child belongs to this process and its end is reported, unless the server is `detached`: then it belongs
    to this process' parent, which must be a subreaper, stays in its session, and survives this process.
    """

    def __init__(
        self,
        connection: socket.socket,
        *,
        streams: int,
        parse: Callable[[bytes], Request],
        run: Callable[[Request, Sequence[int], int], int],
        prepare: Callable[[Request], None] = lambda _: None,
        detached: bool = False,
    ) -> None:
        """Create a server.

        Args:
            connection: the socket to the process that requests forks.
            streams: the most file descriptors in a request.
            parse: reads a request; raises ValueError if it is invalid.
            run: runs in the child, with the request, its descriptors and its parent's pid, and returns
                the exit status.
            prepare: runs in this process before it forks for a request, for imports that later children need
                as well.
            detached: whether this process's parent is the parent of the children, too.
        """
        self._connection = connection
        self._streams, self._parse, self._run, self._detached = streams, parse, run, detached
        self._prepare = prepare
        # Python writes a byte to `_waker` for each signal, so that `select` returns when a child has ended.
        self._woken, self._waker = os.pipe()
        # `set_wakeup_fd` requires this: a full pipe must not block a signal handler.
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waker, False)

    def serve(self) -> None:
        """Answer requests until the socket is closed."""
        # A handler of Python's is necessary for the wake-up: by default the kernel drops SIGCHLD.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # It ends with its socket. Its children would end with it.
        ignore_group_signals()
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
        message, descriptors, flags, _ = socket.recv_fds(self._connection, MAX_DATAGRAM, self._streams)
        if not message:
            return False
        try:
            # The kernel drops descriptors that this process may not open, without an error.
            if flags & socket.MSG_CTRUNC:
                raise OSError(errno.EMFILE, "not all descriptors were received")
            request = self._parse(message)
            self._prepare(request)
            self._send(forked=self._fork(request, descriptors))
        # A failed fork must not end the server, which would end its other children.
        except (OSError, ValueError) as error:
            self._send(failed=getattr(error, "errno", None) or errno.EIO)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _fork(self, request: Request, descriptors: Sequence[int]) -> int:
        """Fork a child and return its pid.

        It leads its own session, or process group if it is detached, so it can be killed with its
        descendants.
        """
        parent = os.getppid() if self._detached else os.getpid()
        ready_read, ready_write = os.pipe()
        with os.fdopen(ready_read, "rb") as ready:
            with os.fdopen(ready_write, "wb"):
                pid = fork_for_parent() if self._detached else os.fork()
                if pid == 0:
                    self._run_child(request, descriptors, parent=parent, ready=(ready_read, ready_write))
            # Returns when the child leads its group and has closed the pipe, or has died. Before that, the
            # group could not be killed.
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
        self, request: Request, descriptors: Sequence[int], *, parent: int, ready: Sequence[int]
    ) -> NoReturn:
        """Run in the child process."""
        status = 1
        try:
            if self._detached:
                os.setpgid(0, 0)
            else:
                os.setsid()
            for descriptor in ready:
                os.close(descriptor)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            accept_group_signals()
            # While a child held this socket, the other side would not see its end when the server dies.
            self._connection.close()
            os.close(self._woken)
            os.close(self._waker)
            # Python reseeds only its own generator after a fork: without this, all children draw the same
            # numbers.
            if "numpy" in sys.modules:
                sys.modules["numpy"].random.seed()
            try:
                status = self._run(request, descriptors, parent)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
        # The child must never return to the loop of the server, as a second server on the same socket.
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            os._exit(status)


def fork_for_parent() -> int:
    """Fork like `os.fork`, but the child becomes a child of this process' parent, which must be a subreaper.

    A process in between forks the child and ends. Then the kernel makes the nearest subreaper its parent.
    """
    read, write = os.pipe()
    if between := os.fork():
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            pid = pipe.read()
        _, status = os.waitpid(between, 0)
        if not pid:
            raise OSError(os.waitstatus_to_exitcode(status), "the fork failed")
        return int(pid)
    between = os.getpid()
    try:
        child = os.fork()
    except OSError as error:
        os._exit(error.errno or errno.EIO)
    if child:
        os.write(write, str(child).encode())
        os._exit(0)
    os.close(read)
    os.close(write)
    while os.getppid() == between:
        time.sleep(0.001)
    return 0


def check_forkable() -> None:
    """Check that no JAX backend runs.

    Raises:
        RuntimeError: an import has started a JAX backend, whose threads children would lack.
    """
    xla_bridge = sys.modules["jax._src.xla_bridge"]
    # Private, because JAX has no public function that answers this without starting a backend.
    if xla_bridge.backends_are_initialized():
        raise RuntimeError("an import started a JAX backend, so its children cannot be forked")
