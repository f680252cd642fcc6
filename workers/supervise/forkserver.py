"""Our side of a fork server: see `workers.runner.forkserver`.

When it dies, the kernel kills the runners that it forked; each of them then counts as killed.
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

from jobs.contracts.fork import LARGEST, ForkRequest
from workers.runner.environment import Environment
from workers.supervise.launch import Child, Ends
from workers.supervise.notes import forget, remember

KILLED = -int(signal.SIGKILL)
IMPORTING = 180.0
"""Seconds for the imports on a busy machine; they take 3 on an idle one."""
ANSWERING = 30.0
"""Seconds for a fork; it takes 0.02."""
REPORTING = 5.0
"""Seconds from a runner's end, which the kernel shows us, to the server's word on its exit status."""


def can_fork() -> bool:
    """Say whether this system has what fork servers need: Linux with pidfds."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return sys.platform == "linux"


class ForkServer:
    """Made by `start`. A `Launcher` for runners of one `Environment`."""

    def __init__(
        self, process: asyncio.subprocess.Process, connection: socket.socket, folder: Path, module: str
    ) -> None:
        self.folder = folder
        self.used = time.monotonic()
        self.born = time.time()
        self._process = process
        self._connection = connection
        self._module = module
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._asked: deque[asyncio.Future[Child]] = deque()
        self._children: dict[int, asyncio.Future[int]] = {}
        self._loop.add_reader(connection, self._hear)

    @classmethod
    async def start(
        cls, folder: Path, environment: Environment, *, variables: Mapping[str, str], module: str
    ) -> Self:
        """Start one whose own files lie in `folder` and wait until it has its imports.

        Raises:
            OSError: it could not be started, died of its imports, or took too long for them.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with contextlib.ExitStack() as undo, theirs, (folder / "output.log").open("wb") as output:
            undo.callback(ours.close)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "workers.runner.forkserver"),
                *("--socket", str(theirs.fileno()), "--parent", str(os.getpid())),
                *("--environment", json.dumps(environment._asdict())),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=variables,
                cwd=folder,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
            undo.pop_all()
        server = cls(process, ours, folder, module)
        try:
            remember(folder, process.pid)
            await asyncio.wait({server._ready}, timeout=IMPORTING)
            if not server._ready.done():
                raise TimeoutError(f"the fork server's imports took more than {IMPORTING:.0f} s")
            server._ready.result()
        except BaseException:
            await asyncio.shield(server.end())
            raise
        return server

    @property
    def alive(self) -> bool:
        """Whether it can fork."""
        return self._process.returncode is None and self._connected

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def childless(self) -> bool:
        """Whether no runner of it lives."""
        return not self._children and not self._asked

    async def launch(self, folder: Path, environment: Mapping[str, str], ends: Ends) -> Child:
        """See `Launcher`. A server that does not answer is killed."""
        if not self.alive:
            raise OSError("the fork server is gone")
        request = ForkRequest(folder=str(folder), environment=dict(environment), module=self._module)
        forked: asyncio.Future[Child] = self._loop.create_future()
        socket.send_fds(self._connection, [request.model_dump_json().encode()], ends)
        self._asked.append(forked)
        self.used = time.monotonic()
        await asyncio.wait({forked}, timeout=ANSWERING)
        if not forked.done():
            self._kill()
            raise TimeoutError(f"the fork server did not answer within {ANSWERING:.0f} s")
        return forked.result()

    async def end(self) -> None:
        """Kill it, and with it every runner that it has forked."""
        self._kill()
        await self._process.wait()
        self._be_gone()
        if self._children:
            await asyncio.wait(list(self._children.values()), timeout=REPORTING)
        forget(self.folder)

    @property
    def _connected(self) -> bool:
        return self._connection.fileno() >= 0

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def _hear(self) -> None:
        try:
            message = self._connection.recv(LARGEST)
        except BlockingIOError:
            return
        except ConnectionResetError:
            message = b""
        if not message:
            self._be_gone()
            return
        match json.loads(message):
            case {"ready": _}:
                _settle(self._ready, None)
            case {"forked": pid}:
                _settle(self._asked.popleft(), self._adopt(pid))
            case {"failed": number}:
                _refuse(self._asked.popleft(), OSError(number, f"no fork: {os.strerror(number)}"))
            case {"ended": pid, "status": status} if pid in self._children:
                self._note_end(pid, self._children[pid], status)

    def _adopt(self, pid: int) -> Child:
        """Follow a runner by a descriptor of the process itself, which no other gets with its pid."""
        ended = self._children[pid] = self._loop.create_future()
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            self._expect_report(pid, ended)
        else:
            self._loop.add_reader(handle, self._see_end, pid, ended, handle)
        return Child(pid, ended)

    def _see_end(self, pid: int, ended: "asyncio.Future[int]", handle: int) -> None:
        self._loop.remove_reader(handle)
        os.close(handle)
        self._expect_report(pid, ended)

    def _expect_report(self, pid: int, ended: "asyncio.Future[int]") -> None:
        patience = REPORTING if self._connected else 0.0
        self._loop.call_later(patience, self._note_end, pid, ended, KILLED)

    def _note_end(self, pid: int, ended: "asyncio.Future[int]", status: int) -> None:
        if self._children.get(pid) is ended:  # else it was reported, and another may have its pid
            del self._children[pid]
            self.used = time.monotonic()
            _settle(ended, status)

    def _be_gone(self) -> None:
        """It has died: nothing more is forked, and its runners die by the kernel's hand."""
        if not self._connected:
            return
        self._loop.remove_reader(self._connection)
        self._connection.close()
        self._kill()  # it may have closed its socket alone
        gone = OSError(f"the fork server died: {self._last_words()}")
        _refuse(self._ready, gone)
        while self._asked:
            _refuse(self._asked.popleft(), gone)

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            return (self.folder / "output.log").read_text(errors="replace")[-1000:].strip()
        return ""


def _settle[T](future: "asyncio.Future[T]", result: T) -> None:
    if not future.done():
        future.set_result(result)


def _refuse[T](future: "asyncio.Future[T]", error: OSError) -> None:
    if not future.done():
        future.set_exception(error)
