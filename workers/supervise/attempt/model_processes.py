"""Executes the models of a task that need code of users, each in a sandbox of its own.

The runner of the task gets a connection to the process of each model, and never the code. It connects to a
socket in the folder of its attempt; the supervisor starts the process then, sends the runner the connection,
and at the end of the process the cause.
"""

import asyncio
import contextlib
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from jobs.messages.events import Log
from jobs.messages.sandbox import MIB, Limits, SandboxRecord, SandboxRequest
from jobs.messages.task import ModelWithCode, OwnCode
from jobs.spec.exports import STORED
from workers.confinement.isolation.access import INPUTS, Isolation, RunnerAccess
from workers.confinement.sandbox.launch import Owner, SandboxRefused, Streams, launch
from workers.confinement.sandbox.process import SandboxProcess
from workers.confinement.sandbox.watch import Watch
from workers.runner.environment import Environment
from workers.supervise.attempt_end import signal_name
from workers.supervise.events.event_recorder import EventRecorder
from workers.supervise.events.log_file import level_of
from workers.supervise.pool.runner_pool import RunnerPool
from workers.supervise.pool.sandbox_folders import ENTER, FOR_ALL, put_code
from workers.supervise.pool.sandboxes import Sandboxes, end_of, started_in
from workers.system.environment import runner_environment
from workers.system.line_splitter import LineSplitter
from workers.system.socket_paths import short_path

MAX_ROWS = 64
"""Rows of the largest batch that it computes."""
DISK_BYTES = 256 * MIB
"""A model computes, and has no reason to write."""
MAX_LINES = 1000
MAX_LINE_BYTES = 4000
_CREDENTIALS = struct.Struct("3i")


class _Folders(NamedTuple):
    """The folders of a process: model file, code, links to this program's packages, and temporary files."""

    inputs: Path
    code: Path
    program: Path
    scratch: Path


@dataclass
class _Prepared:
    """The files of a process that is not started yet."""

    request: SandboxRequest
    command: tuple[str, ...]
    file: Path
    folders: _Folders
    access: RunnerAccess | None


@dataclass
class _Running:
    """A process that executes a model."""

    process: SandboxProcess
    watch: Watch
    lines: "_Lines"
    ended: "asyncio.Future[int]"

    def cause(self, status: int) -> str:
        """Return why it has ended, for people."""
        if self.watch.ended is not None:
            return self.watch.ended.message
        how = f"by {signal_name(-status)}" if status < 0 else f"with status {status}"
        last = self.lines.last
        return f"its process ended {how}" + (f"; its last line: {last}" if last else "")

    def close(self) -> None:
        """End all its processes, and delete its temporary folder. Call it in a thread."""
        self.process.kill()
        try:
            # All lines have been received when this returns.
            self.watch.stop()
        finally:
            self.process.close()


@dataclass
class ModelProcesses:
    """The processes of the models of one task.

    Attributes:
        pool: gives folders, users and sandboxes.
        limits: of each process.
        threads: of each process.
        record: records the sandbox of a process, before the model is loaded.
        recorder: gets the lines that the processes print.
        fail: is called with an error of the supervisor.
    """

    pool: RunnerPool
    limits: Limits
    threads: int
    record: Callable[[SandboxRecord], Awaitable[None]]
    recorder: EventRecorder
    fail: Callable[[BaseException], None]
    _serving: list["asyncio.Task[None]"] = field(default_factory=list)

    async def open(self, models: Iterable[ModelWithCode], folder: Path, runner: int) -> dict[str, Path]:
        """Open a socket for each model that can be executed; return the sockets by the models' names.

        Args:
            models: those of the task.
            folder: of the attempt, which only its runner can enter.
            runner: the process that may connect.

        Raises:
            OSError: the disk is full.
            SandboxRefused: this machine offers no sandbox that is strong enough.
        """
        sockets = {}
        for model in models:
            if model.code is None or model.failure:
                continue
            await self._sandboxes.require(model.code.minimum)
            address = sockets[model.name] = folder / f"{model.name}.sock"
            serving = self._serve(model, model.code, _listener(address), runner)
            self._serving.append(asyncio.create_task(serving, name=f"{model.name} of {folder.name}"))
        return sockets

    async def close(self) -> None:
        """End all processes, and wait until nothing of them is left."""
        for serving in self._serving:
            serving.cancel()
        if self._serving:
            await asyncio.wait(self._serving)

    @property
    def _sandboxes(self) -> Sandboxes:
        if self.pool.sandboxes is None:
            raise SandboxRefused("this worker starts no code of users")
        return self.pool.sandboxes

    async def _serve(self, model: ModelWithCode, code: OwnCode, listener: socket.socket, runner: int) -> None:
        try:
            with listener:
                connection = await _accepted(listener, runner)
            with connection:
                await self._execute(model, code, connection)
        # The runner has ended, or closed the connection.
        except ConnectionError:
            pass
        except Exception as error:  # noqa: BLE001  becomes the end of the attempt
            self.fail(error)

    async def _execute(self, model: ModelWithCode, code: OwnCode, connection: socket.socket) -> None:
        """Start the process of a model, give the runner its connection, and send the cause of its end."""
        loop = asyncio.get_running_loop()
        folder = self.pool.new_folder()
        isolation = self.pool.isolation if self._sandboxes.have_own_users else None
        preparing = asyncio.ensure_future(
            asyncio.to_thread(self._prepare, Path(model.file), code, folder, isolation)
        )
        try:
            ours, theirs = socket.socketpair()
            with ours:
                with theirs:
                    prepared = await asyncio.shield(preparing)
                    running = await self._start(model.name, prepared, theirs.fileno())
                try:
                    await self.record(running.process.record)
                    answer = json.dumps({"file": str(prepared.file)}).encode()
                    socket.send_fds(connection, [answer], [ours.fileno()])
                    ours.close()
                    status = await asyncio.shield(running.ended)
                    # Its last line may explain the end.
                    await asyncio.to_thread(running.watch.stop)
                    running.lines.end()
                    await loop.sock_sendall(connection, json.dumps({"ended": running.cause(status)}).encode())
                finally:
                    await asyncio.shield(asyncio.to_thread(running.close))
                    running.lines.end()
        finally:
            await asyncio.shield(_removed(preparing, folder))

    def _prepare(self, file: Path, code: OwnCode, folder: Path, isolation: Isolation | None) -> _Prepared:
        """Put the files of a process into its folder. Call it in a thread."""
        access = None if isolation is None else isolation.create_access(folder)
        try:
            folders = _Folders(*(folder / name for name in (INPUTS, "code", "program", "scratch")))
            folders.inputs.mkdir(exist_ok=True)
            for path in folders[1:]:
                path.mkdir()
                # Only this process can enter the folder around them.
                path.chmod(ENTER if path == folders.scratch else FOR_ALL)
            self._sandboxes.link_program(folders.program)
            put_code(code, folders.code)
            stored = _linked(file, folders.inputs) if access is None else access.read_only(file)
            # The store names files by their digests, but Keras needs the suffix.
            place = folders.inputs / STORED.file_name()
            place.symlink_to(stored.name)
        except BaseException:
            if access is not None:
                access.close()
            raise
        # A virtual environment: the folder above that of its programs.
        packages = (str(Path(code.python).parent.parent),) if code.python else ()
        request = SandboxRequest(
            minimum=code.minimum,
            readable=(*map(str, folders[:3]), *packages, *self._sandboxes.readable),
            folder=str(folders.code),
            # Also if the project allows it to runs: another host could know the targets.
            network=False,
            environment=self._environment(folders),
            limits=self.limits.model_copy(
                update={
                    "disk_of_all": min(self.limits.disk_of_all, DISK_BYTES),
                    "file_bytes": min(self.limits.file_bytes, DISK_BYTES),
                }
            ),
        )
        command = (
            # Without the working folder in the path of imports: it has the code.
            *(code.python or sys.executable, "-P", "-m", self.pool.model_module),
            *("--code", str(folders.code), "--max-batch", str(MAX_ROWS)),
        )
        return _Prepared(request, command, place, folders, access)

    def _environment(self, folders: _Folders) -> dict[str, str]:
        pools = ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        return {
            **runner_environment(folders.scratch),
            **dict.fromkeys(pools, str(self.threads)),
            "PYTHONPATH": str(folders.program),
            # Devices of GPUs are not in a sandbox.
            "JAX_PLATFORMS": "cpu",
        }

    async def _start(self, name: str, prepared: _Prepared, descriptor: int) -> _Running:
        access = prepared.access
        owner = None if access is None else Owner(access.user.uid, access.group)
        streams = Streams(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, keep=(descriptor,))
        command = (*prepared.command, "--socket", str(descriptor))
        # The same fork server as that of the task's runner.
        starter = await self.pool.sandbox_starter(Environment(self.threads))

        def start() -> SandboxProcess:
            return launch(
                prepared.request, command, self._sandboxes.states.result(), owner=owner, streams=streams,
                scratch=prepared.folders.scratch, start=starter,
            )  # fmt: skip

        process = await started_in(self._sandboxes.starter, start)
        lines = _Lines(name, self.recorder)
        try:
            watch = Watch(process, prepared.request.writable).start()
            assert process.stdout is not None  # noqa: S101  it is a pipe
            receive = partial(_in_loop, asyncio.get_running_loop(), lines.receive)
            watch.read(process.stdout, receive)
            return _Running(process, watch, lines, end_of(process))
        except BaseException:
            await asyncio.shield(asyncio.to_thread(process.close))
            raise


class _Lines:
    """Writes the lines that a process prints to the log of the attempt, and keeps the last one."""

    def __init__(self, name: str, recorder: EventRecorder) -> None:
        self._name, self._recorder = name, recorder
        self._splitter = LineSplitter(MAX_LINE_BYTES)
        self._count = 0
        self._last: deque[str] = deque(maxlen=1)

    @property
    def last(self) -> str:
        """The last line, shortened; empty if there is none."""
        return self._last[0][:500] if self._last else ""

    def receive(self, chunk: bytes) -> None:
        self._record(self._splitter.feed(chunk))

    def end(self) -> None:
        """Record the last line if it has no newline."""
        self._record([self._splitter.rest()])

    def _record(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            text = line.decode(errors="replace").replace("\0", "\ufffd").strip()
            if text:
                self._last.append(text)
                self._add(text)

    def _add(self, line: str) -> None:
        self._count += 1
        if self._count > MAX_LINES:
            return
        text = line if self._count < MAX_LINES else f"more than {MAX_LINES} lines; further ones are left out"
        # The end of the run follows when a line of its own cannot be written.
        with contextlib.suppress(OSError):
            self._recorder.add(Log(time=time.time(), level=level_of(line), source=self._name, line=text))


def _in_loop(loop: asyncio.AbstractEventLoop, receive: Callable[[bytes], None], chunk: bytes) -> None:
    # The loop of a node that ends may be closed.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(receive, chunk)


def _listener(address: Path) -> socket.socket:
    """Return a socket at which the runner of the attempt can connect."""
    address.unlink(missing_ok=True)
    # Each message arrives as a whole, also if the next one was sent before it was read.
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with short_path(address) as path:
            listener.bind(path)
            # The runner may have a user of its own. No other process but this one can enter the folder.
            os.chmod(path, 0o666)  # noqa: PTH101, S103
        listener.listen()
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


async def _accepted(listener: socket.socket, runner: int) -> socket.socket:
    """Return the connection of a runner. At some levels of sandboxes, others may find the socket."""
    loop = asyncio.get_running_loop()
    while True:
        connection, _ = await loop.sock_accept(listener)
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        if _CREDENTIALS.unpack(credentials)[0] == runner:
            return connection
        connection.close()


def _linked(file: Path, folder: Path) -> Path:
    """Return a link to a model file in a folder; a copy on another file system."""
    link = folder / file.name
    try:
        os.link(file, link, follow_symlinks=False)
    except OSError:
        shutil.copyfile(file, link)
    return link


async def _removed(preparing: "asyncio.Future[_Prepared]", folder: Path) -> None:
    """Remove the files of a process that has ended, and withdraw its access."""
    await asyncio.wait({preparing})
    if preparing.exception() is None and (access := preparing.result().access) is not None:
        await asyncio.to_thread(access.close)
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
