"""Starts a fork server process and has it fork children. `forking.server` is its other side."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from jobs.messages.fork import MAX_DATAGRAM

KILLED = -int(signal.SIGKILL)
# Seconds. The imports take 3 s on an idle machine.
IMPORT_TIMEOUT = 180.0
# Seconds. A fork takes 0.02 s, so a server that needs longer hangs.
FORK_TIMEOUT = 30.0
EXIT_REPORT_TIMEOUT = 5.0
"""Seconds from a child's end, seen through its pidfd, until the server must have reported its status."""


@dataclass(frozen=True)
class Child:
    """A started process. `ended` gets its exit status, negative for a signal, once it has ended."""

    pid: int
    ended: "asyncio.Future[int]"


def can_fork() -> bool:
    """Return whether this system supports fork servers: Linux with pidfds."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return sys.platform == "linux"


class ForkServer:
    """A fork server process. Create it with `spawn`, and then wait for `imported`."""

    def __init__(
        self, process: asyncio.subprocess.Process, connection: socket.socket, output: Path | None
    ) -> None:
        self.last_used = time.monotonic()
        self.started_at = time.time()
        self._process = process
        self._connection = connection
        self._output = output
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        # A queue: the server answers requests in their order.
        self._pending: deque[asyncio.Future[Child]] = deque()
        self._children: dict[int, asyncio.Future[int]] = {}
        self._loop.add_reader(connection, self._on_message)

    @classmethod
    async def spawn(
        cls,
        command: Sequence[str],
        *,
        variables: Mapping[str, str],
        cwd: Path | None = None,
        output: Path | None = None,
        own_session: bool = True,
    ) -> Self:
        """Start a server process, which dies with this one. Call it on the main thread.

        Args:
            command: its command line; the options `--socket` and `--parent` are added.
            variables: its entire environment.
            cwd: its working folder.
            output: the file for its output, which otherwise goes to this process' output.
            own_session: whether it leads a session. Otherwise it must leave this process' group by itself.

        Raises:
            OSError: it could not be started.
        """
        # SEQPACKET keeps the boundaries of messages, and unlike DGRAM it reports that the other side closed.
        connection, server_socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.setblocking(False)
        with contextlib.ExitStack() as undo, contextlib.ExitStack() as files, server_socket:
            undo.callback(connection.close)
            file = files.enter_context(output.open("wb")) if output else None
            process = await asyncio.create_subprocess_exec(
                *(*command, "--socket", str(server_socket.fileno()), "--parent", str(os.getpid())),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=variables,
                cwd=cwd,
                pass_fds=(server_socket.fileno(),),
                start_new_session=own_session,
            )
            undo.pop_all()
        return cls(process, connection, output)

    async def imported(self) -> None:
        """Wait until its imports are done. A server that fails or takes too long is ended.

        Raises:
            OSError: its imports failed or took too long.
        """
        try:
            await asyncio.wait_for(self._ready, IMPORT_TIMEOUT)
        except TimeoutError:
            await asyncio.shield(self.end())
            message = f"the fork server's imports took more than {IMPORT_TIMEOUT:.0f} s"
            raise TimeoutError(message) from None
        # A cancelled start must not leave a server behind either.
        except (OSError, asyncio.CancelledError):
            await asyncio.shield(self.end())
            raise

    @property
    def alive(self) -> bool:
        return self._process.returncode is None and self._connected

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def idle(self) -> bool:
        """Whether it has no child and no pending fork."""
        return not self._children and not self._pending

    async def fork(
        self, request: bytes, descriptors: Sequence[int], *, timeout: float | None = None
    ) -> Child:
        """Fork a child. A server that does not answer within `timeout` seconds is killed.

        Raises:
            OSError: the child could not be forked.
        """
        if not self.alive:
            raise OSError("the fork server has ended")
        timeout = FORK_TIMEOUT if timeout is None else timeout
        forked: asyncio.Future[Child] = self._loop.create_future()
        socket.send_fds(self._connection, [request], descriptors)
        self._pending.append(forked)
        self.last_used = time.monotonic()
        try:
            return await asyncio.wait_for(forked, timeout)
        except TimeoutError:
            # Children that belong to it die with it. A server that hangs could not reap them either.
            self._kill()
            raise TimeoutError(f"the fork server did not answer within {timeout:.0f} s") from None

    async def end(self) -> None:
        """Kill the server, and with it the children that belong to it."""
        self._kill()
        await self._process.wait()
        self._on_closed()

    @property
    def _connected(self) -> bool:
        return self._connection.fileno() >= 0

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def _on_message(self) -> None:
        try:
            message = self._connection.recv(MAX_DATAGRAM)
        except BlockingIOError:
            return
        except ConnectionResetError:
            message = b""
        if not message:
            self._on_closed()
            return
        match json.loads(message):
            case {"ready": _}:
                _resolve(self._ready, None)
            case {"forked": pid}:
                self._on_forked(pid)
            case {"failed": number}:
                _reject(self._pending.popleft(), OSError(number, f"the fork failed: {os.strerror(number)}"))
            case {"ended": pid, "status": status} if pid in self._children:
                self._report_exit(pid, self._children[pid], status)

    def _on_forked(self, pid: int) -> None:
        forked = self._pending.popleft()
        try:
            child = self._watch_child(pid)
        # No descriptor is free to watch it by, so its end would not be noticed.
        except OSError as error:
            _kill_child(pid)
            _reject(forked, error)
            return
        # Its caller was cancelled, or has started another process after the timeout.
        if forked.done():
            _kill_child(pid)
        _resolve(forked, child)

    def _watch_child(self, pid: int) -> Child:
        """Watch a child by its pidfd, which stays valid even if its pid is reused."""
        ended = self._children[pid] = self._loop.create_future()
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            self._await_exit_status(pid, ended)
        else:
            self._loop.add_reader(handle, self._on_child_exit, pid, ended, handle)
        return Child(pid, ended)

    def _on_child_exit(self, pid: int, ended: "asyncio.Future[int]", handle: int) -> None:
        self._loop.remove_reader(handle)
        status = _own_status(handle)
        os.close(handle)
        if status is None:
            self._await_exit_status(pid, ended)
        else:
            self._report_exit(pid, ended, status)

    def _await_exit_status(self, pid: int, ended: "asyncio.Future[int]") -> None:
        # Only the server, its parent, can read the status of the child. Without it, the status is the signal
        # that the kernel sent to all its children when the server died.
        timeout = EXIT_REPORT_TIMEOUT if self._connected else 0.0
        self._loop.call_later(timeout, self._report_exit, pid, ended, KILLED)

    def _report_exit(self, pid: int, ended: "asyncio.Future[int]", status: int) -> None:
        # Otherwise the end was reported already, and another child may have the same pid.
        if self._children.get(pid) is ended:
            del self._children[pid]
            self.last_used = time.monotonic()
            _resolve(ended, status)

    def _on_closed(self) -> None:
        """Handle the server's death: fail the pending forks."""
        if not self._connected:
            return
        self._loop.remove_reader(self._connection)
        self._connection.close()
        # The socket may have closed although the process has not ended.
        self._kill()
        output = ""
        if self._output is not None:
            with contextlib.suppress(OSError):
                output = f": {self._output.read_text(errors='replace')[-1000:].strip()}"
        gone = OSError(f"the fork server died{output}")
        _reject(self._ready, gone)
        while self._pending:
            _reject(self._pending.popleft(), gone)


def _kill_child(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _own_status(handle: int) -> int | None:
    """Return a child's exit status after its end; None if it is not a child of this process."""
    try:
        ended = os.waitid(os.P_PIDFD, handle, os.WEXITED | os.WNOHANG)
    except ChildProcessError:
        return None
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


# `_on_closed` rejects `_ready` whether the imports were done or not, so a future may have its result already.
# A future whose wait was cut short is cancelled by `wait_for`: asyncio would log an error that no one awaits.
def _resolve[T](future: "asyncio.Future[T]", result: T) -> None:
    if not future.done():
        future.set_result(result)


def _reject[T](future: "asyncio.Future[T]", error: OSError) -> None:
    if not future.done():
        future.set_exception(error)
