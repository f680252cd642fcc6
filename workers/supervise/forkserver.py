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

import psutil

from jobs.spec.fork import LARGEST, ForkRequest
from workers.runner.environment import Environment
from workers.supervise.launch import Child, Ends
from workers.supervise.notes import forget, remember

KILLED = -int(signal.SIGKILL)
LOOK = 0.05
"""How often it is looked whether an orphan is gone, in seconds."""


class ForkServer:
    """Made by `start`. A `Launcher` for runners of one `Environment`."""

    def __init__(
        self, process: asyncio.subprocess.Process, connection: socket.socket, folder: Path, module: str
    ) -> None:
        self._process = process
        self._connection = connection
        self.folder = folder
        self.module = module
        self._ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._asked: deque[asyncio.Future[int]] = deque()
        self._children: dict[int, asyncio.Future[int]] = {}
        self._burials: set[asyncio.Task[None]] = set()
        self.used = time.monotonic()
        asyncio.get_running_loop().add_reader(connection, self._hear)

    @classmethod
    async def start(
        cls, folder: Path, environment: Environment, *, variables: Mapping[str, str], module: str
    ) -> Self:
        """Start one whose own files lie in `folder` and wait until it has its imports.

        Raises:
            OSError: it could not be started, or died of its imports.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs, (folder / "output.log").open("wb") as output:
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
        remember(folder, process.pid)
        server = cls(process, ours, folder, module)
        await server._ready
        return server

    @property
    def alive(self) -> bool:
        """Whether it can fork."""
        return self._process.returncode is None and self._connection.fileno() >= 0

    @property
    def childless(self) -> bool:
        """Whether no runner of it lives."""
        return not self._children and not self._asked

    async def launch(self, folder: Path, environment: Mapping[str, str], ends: Ends) -> Child:
        """See `Launcher`."""
        if not self.alive:
            raise OSError("the fork server is gone")
        request = ForkRequest(folder=str(folder), environment=dict(environment), module=self.module)
        forked: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        socket.send_fds(self._connection, [request.model_dump_json().encode()], ends)
        self._asked.append(forked)
        self.used = time.monotonic()
        pid = await forked
        return Child(pid, self._children[pid])

    async def end(self) -> None:
        """Kill it, and with it every runner that it has forked."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        self._be_gone()
        if self._burials:
            await asyncio.wait(self._burials)
        forget(self.folder)

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
            case {"ready": pid}:
                self._ready.set_result(pid)
            case {"forked": pid}:
                self._children[pid] = asyncio.get_running_loop().create_future()
                asked = self._asked.popleft()
                if not asked.done():
                    asked.set_result(pid)
            case {"ended": pid, "status": status}:
                self.used = time.monotonic()
                self._children.pop(pid).set_result(status)

    def _be_gone(self) -> None:
        """It has died: nothing more is forked, and its runners die by the kernel's hand."""
        if self._connection.fileno() < 0:
            return
        asyncio.get_running_loop().remove_reader(self._connection)
        self._connection.close()
        waiting = [self._ready, *self._asked] if not self._ready.done() else list(self._asked)
        self._asked.clear()
        for future in waiting:
            if not future.done():
                future.set_exception(OSError(f"the fork server died: {self._last_words()}"))
        for pid, ended in self._children.items():
            burial = asyncio.create_task(_bury(pid, ended), name=f"end of {pid}")
            self._burials.add(burial)
            burial.add_done_callback(self._burials.discard)
        self._children = {}

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            return (self.folder / "output.log").read_text(errors="replace")[-1000:].strip()
        return ""


async def _bury(pid: int, ended: "asyncio.Future[int]") -> None:
    """Wait for the end of a process that is nobody's child any more."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    while _lives(pid):
        await asyncio.sleep(LOOK)
    ended.set_result(KILLED)


def _lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
