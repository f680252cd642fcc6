"""Starts a fork server process and has it fork runners. `workers.runner.forkserver` is its other side.

When the server dies, the kernel kills the runners that it forked, and each of them is reported as killed.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from jobs.contracts.fork import MAX_DATAGRAM, ForkRequest
from workers.runner.environment import Environment
from workers.supervise.launcher import Child, RunnerDescriptors
from workers.supervise.pid_file import remove_pid_file, write_pid_file

KILLED = -int(signal.SIGKILL)
# Seconds. The imports take 3 s on an idle machine.
IMPORT_TIMEOUT = 180.0
# Seconds. A fork takes 0.02 s, so a server that needs longer hangs.
FORK_TIMEOUT = 30.0
EXIT_REPORT_TIMEOUT = 5.0
"""Seconds from a runner's end, seen through its pidfd, until the server must have reported its status."""


def can_fork() -> bool:
    """Return whether this system supports fork servers: Linux with pidfds."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return sys.platform == "linux"


class ForkServer:
    """A `Launcher` for the runners of one `Environment`. Create it with `start`."""

    def __init__(
        self, process: asyncio.subprocess.Process, connection: socket.socket, folder: Path, module: str
    ) -> None:
        self.folder = folder
        self.last_used = time.monotonic()
        self.started_at = time.time()
        self._process = process
        self._connection = connection
        self._module = module
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._pending: deque[asyncio.Future[Child]] = deque()
        self._children: dict[int, asyncio.Future[int]] = {}
        # `_pending` is a queue: the server answers requests in their order.
        self._loop.add_reader(connection, self._on_message)

    @classmethod
    async def start(
        cls, folder: Path, environment: Environment, *, variables: Mapping[str, str], module: str
    ) -> Self:
        """Start a server with its files in `folder` and wait until its imports are done.

        Raises:
            OSError: it could not be started, or its imports failed or took too long.
        """
        # SEQPACKET keeps the boundaries of messages, and unlike DGRAM it reports that the other side closed.
        connection, server_socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.setblocking(False)
        with contextlib.ExitStack() as undo, server_socket, (folder / "output.log").open("wb") as output:
            undo.callback(connection.close)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "workers.runner.forkserver"),
                *("--socket", str(server_socket.fileno()), "--parent", str(os.getpid())),
                *("--environment", json.dumps(environment._asdict())),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=variables,
                cwd=folder,
                pass_fds=(server_socket.fileno(),),
                start_new_session=True,
            )
            undo.pop_all()
        server = cls(process, connection, folder, module)
        try:
            write_pid_file(folder, process.pid)
            await asyncio.wait({server._ready}, timeout=IMPORT_TIMEOUT)
            if not server._ready.done():
                raise TimeoutError(f"the fork server's imports took more than {IMPORT_TIMEOUT:.0f} s")
            server._ready.result()
        # BaseException: a cancelled start must not leave a server behind either.
        except BaseException:
            await asyncio.shield(server.end())
            raise
        return server

    @property
    def alive(self) -> bool:
        return self._process.returncode is None and self._connected

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def idle(self) -> bool:
        """Whether it has no runner and no pending fork."""
        return not self._children and not self._pending

    async def launch(
        self, folder: Path, environment: Mapping[str, str], descriptors: RunnerDescriptors
    ) -> Child:
        """Fork a runner. A server that does not answer is killed."""
        if not self.alive:
            raise OSError("the fork server has ended")
        request = ForkRequest(folder=str(folder), environment=dict(environment), module=self._module)
        forked: asyncio.Future[Child] = self._loop.create_future()
        socket.send_fds(self._connection, [request.model_dump_json().encode()], descriptors)
        self._pending.append(forked)
        self.last_used = time.monotonic()
        await asyncio.wait({forked}, timeout=FORK_TIMEOUT)
        if not forked.done():
            # Its other runners die with it. They could not be reaped by a server that hangs either.
            self._kill()
            raise TimeoutError(f"the fork server did not answer within {FORK_TIMEOUT:.0f} s")
        return forked.result()

    async def end(self) -> None:
        """Kill the server, and with it the runners that it forked."""
        self._kill()
        await self._process.wait()
        self._on_closed()
        if self._children:
            await asyncio.wait(list(self._children.values()), timeout=EXIT_REPORT_TIMEOUT)
        remove_pid_file(self.folder)

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
                _resolve(self._pending.popleft(), self._watch_runner(pid))
            case {"failed": number}:
                _reject(self._pending.popleft(), OSError(number, f"the fork failed: {os.strerror(number)}"))
            case {"ended": pid, "status": status} if pid in self._children:
                self._report_exit(pid, self._children[pid], status)

    def _watch_runner(self, pid: int) -> Child:
        """Watch a runner by its pidfd, which stays valid even if its pid is reused."""
        ended = self._children[pid] = self._loop.create_future()
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            self._await_exit_status(pid, ended)
        else:
            self._loop.add_reader(handle, self._on_runner_exit, pid, ended, handle)
        return Child(pid, ended)

    def _on_runner_exit(self, pid: int, ended: "asyncio.Future[int]", handle: int) -> None:
        self._loop.remove_reader(handle)
        os.close(handle)
        self._await_exit_status(pid, ended)

    def _await_exit_status(self, pid: int, ended: "asyncio.Future[int]") -> None:
        # Only the server, its parent, can read the status of a runner. Without it, the status is the signal
        # that the kernel sent to all runners when the server died.
        timeout = EXIT_REPORT_TIMEOUT if self._connected else 0.0
        self._loop.call_later(timeout, self._report_exit, pid, ended, KILLED)

    def _report_exit(self, pid: int, ended: "asyncio.Future[int]", status: int) -> None:
        # Otherwise the end was reported already, and another runner may have the same pid.
        if self._children.get(pid) is ended:
            del self._children[pid]
            self.last_used = time.monotonic()
            _resolve(ended, status)

    def _on_closed(self) -> None:
        """Handle the server's death: fail the pending forks. The kernel kills its runners."""
        if not self._connected:
            return
        self._loop.remove_reader(self._connection)
        self._connection.close()
        # The socket may have closed although the process has not ended.
        self._kill()
        output = ""
        with contextlib.suppress(OSError):
            output = (self.folder / "output.log").read_text(errors="replace")[-1000:].strip()
        gone = OSError(f"the fork server died: {output}")
        _reject(self._ready, gone)
        while self._pending:
            _reject(self._pending.popleft(), gone)


# `_on_closed` rejects `_ready` whether the imports were done or not, so a future may have its result already.
def _resolve[T](future: "asyncio.Future[T]", result: T) -> None:
    if not future.done():
        future.set_result(result)


def _reject[T](future: "asyncio.Future[T]", error: OSError) -> None:
    if not future.done():
        future.set_exception(error)
