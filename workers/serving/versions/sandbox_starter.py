"""Starts model children with code of users, each in a sandbox of its own.

They are forks of the fork server of ordinary children: it executes no models and no code of users, has the
environment of ordinary children, and gets no secret, so a fork begins with nothing but imports.
"""

import asyncio
import hashlib
import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from subprocess import PIPE, STDOUT
from typing import NamedTuple

from jobs.contracts.release import ReleasedCode
from jobs.contracts.sandbox import MIB, Level, LevelState, Limits, SandboxRequest
from workers.environments.folder import Held
from workers.forking.sandbox_forks import SandboxForks
from workers.isolation.users import VARIABLE, RunnerUser, RunnerUsers, UidRange
from workers.sandbox.launch import Owner, SandboxRefused, Starter, Streams, launch, spawn
from workers.sandbox.levels import find_levels, wanted_levels
from workers.sandbox.process import SandboxProcess
from workers.sandbox.view import CODE_ROOT, PACKAGES
from workers.sandbox.watch import Watch
from workers.serving.errors import plain_text
from workers.serving.versions.child_process import SEND_BUFFER_BYTES, child_environment
from workers.serving.versions.child_starter import FORK_SECONDS
from workers.serving.versions.code_packages import PackagesMissing, install
from workers.serving.versions.orphans import Orphans, reaping
from workers.serving.versions.sandboxed_child import SandboxedChild
from workers.serving.versions.sandboxed_model import SandboxedModel, SandboxSettings

logger = logging.getLogger("trainyard.serving")
code_logger = logging.getLogger("trainyard.serving.code")
GIB = 2**30
# Beside the memory in use, JAX and the allocator reserve memory that they never touch.
RESERVED = GIB
WATCH_SECONDS = 0.25
"""The time between two measurements: more often takes a share of a core for each version."""
MAX_LINE = 1000
EARLY_LOOKS, EARLY_LOOK_SECONDS, LOOK_SECONDS = 80, 0.25, 2.0
"""The times between two looks for the processes inside a sandbox, which an early end could leave behind."""
_PASSED = ("LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "XLA_FLAGS", "PYTHONUNBUFFERED")


class CodeRefused(OSError):
    """Code of users cannot be started here. The text is the reason."""


@dataclass
class _Run:
    """The folder of one child, and its user if the server is root."""

    folder: Path
    user: RunnerUser | None

    @property
    def owner(self) -> Owner | None:
        return None if self.user is None else Owner(self.user.uid, self.user.uid)

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.user is not None and self.user.end_processes():
            self.user.release()


class SandboxStarter:
    """Starts children in sandboxes; see `Sandboxes`."""

    def __init__(self, settings: SandboxSettings) -> None:
        self._home, self._command, self._memory, self._environments, self._fork_server = settings
        self._closing = threading.Event()
        # A sandbox that is not forked ends with the thread that started it, so one thread starts all and
        # lives as long as this process.
        self._starter = ThreadPoolExecutor(1, "sandboxes")
        self._states: tuple[LevelState, ...] | None = None
        self._folder: Path | None = None

    async def start(self, version: SandboxedModel) -> tuple[SandboxedChild, Path]:
        """Return a new child without a model, and the path of its model file, which it can read.

        Raises:
            CodeRefused: this machine offers no sandbox that is strong enough.
            OSError: it could not be started.
        """
        loop = asyncio.get_running_loop()
        states = await loop.run_in_executor(self._starter, self._levels)
        try:
            held = await asyncio.to_thread(self._install, version, states)
        except PackagesMissing as error:
            raise CodeRefused(str(error)) from error
        try:
            return await self._start_in(held, version)
        except BaseException:
            if held is not None:
                held.release()
            raise

    async def _start_in(self, held: Held | None, version: SandboxedModel) -> tuple[SandboxedChild, Path]:
        """Start a child in an environment, which is released at its end."""
        loop = asyncio.get_running_loop()
        server = await self._fork_server()
        starter = spawn if server is None else SandboxForks(server, FORK_SECONDS)
        router_socket, child_socket = socket.socketpair()
        router_socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        with child_socket, ExitStack() as undo:
            undo.callback(router_socket.close)
            starting = loop.run_in_executor(
                self._starter, partial(self._start, held, version, child_socket.fileno(), starter)
            )
            try:
                started = await asyncio.shield(starting)
            except asyncio.CancelledError:
                # The thread uses the socket until then.
                await asyncio.wait({starting})
                if starting.exception() is None:
                    await asyncio.to_thread(starting.result().abandon)
                raise
            undo.pop_all()
        _, child = await loop.create_unix_connection(SandboxedChild, sock=router_socket)
        child.attach(started.process, started.watch, started.lines.last, started.follow(loop), started.end)
        return child, started.model

    async def close(self) -> None:
        """End the thread. All children must have ended."""
        self._closing.set()
        await asyncio.to_thread(self._starter.shutdown)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _install(self, version: SandboxedModel, states: tuple[LevelState, ...]) -> Held | None:
        with reaping():
            return install(
                version.name, version.code, self._environments, states, self._claimed, self._closing
            )

    def _levels(self) -> tuple[LevelState, ...]:
        if self._states is None:
            with reaping():
                self._states = self._find_levels()
        return self._states

    def _start(
        self, held: Held | None, version: SandboxedModel, descriptor: int, starter: Starter
    ) -> "_Started":
        with ExitStack() as undo:
            run = _Run(self._new_folder(), self._claim())
            undo.callback(run.close)
            code, model = _put_files(run, version)
            request = self._request(version.code, (code, model, _put_program(run)), held)
            streams = Streams(stdout=PIPE, stderr=STDOUT, keep=(descriptor,))
            try:
                process = launch(
                    request,
                    self._command_line(sys.executable if held is None else held.python, descriptor, code),
                    self._levels(),
                    owner=run.owner,
                    streams=streams,
                    scratch=run.folder,
                    start=starter,
                )
            except SandboxRefused as error:
                raise CodeRefused(str(error)) from error
            undo.callback(process.close)
            lines = _Lines(version.name)
            watch = Watch(process, request.writable, interval=WATCH_SECONDS).start()
            assert process.stdout is not None  # noqa: S101  it is a pipe
            watch.read(process.stdout, lines.receive)
            undo.pop_all()
        logger.info("%s runs in a sandbox of the level %s", version.name, process.record.level)
        return _Started(process, watch, lines, run, model, held, Orphans(process))

    def _find_levels(self) -> tuple[LevelState, ...]:
        try:
            wanted = wanted_levels()
        except ValueError as error:
            raise CodeRefused(str(error)) from error
        # Where runs have their folders, which they must be able to reach.
        parent = self._place()
        if os.geteuid() != 0:
            return find_levels(parent=parent, wanted=wanted)
        user = self._claim()
        assert user is not None  # noqa: S101  this process is root
        try:
            return find_levels(lambda: Owner(user.uid, user.uid), parent=parent, wanted=wanted)
        finally:
            user.end_processes()
            user.release()

    def _claim(self) -> RunnerUser | None:
        """Return a user for one child, if this process is root.

        Raises:
            CodeRefused: it may have none.
        """
        if os.geteuid() != 0:
            return None
        uids = UidRange.read(os.environ)
        if uids is None:
            raise CodeRefused(
                f"the prediction server is root, and {VARIABLE} is off: it can give code of users no user of "
                "its own"
            )
        return RunnerUsers(uids, self._home / "users").claim()

    @contextmanager
    def _claimed(self) -> Iterator[Owner | None]:
        """Yield a user for one installation, if this process is root."""
        user = self._claim()
        if user is None:
            yield None
            return
        try:
            yield Owner(user.uid, user.uid)
        finally:
            if user.end_processes():
                user.release()

    def _new_folder(self) -> Path:
        """Return a new folder for a child, in one that other users may enter but not list."""
        run = Path(tempfile.mkdtemp(prefix="run-", dir=self._place()))
        run.chmod(0o711)
        return run

    def _place(self) -> Path:
        if self._folder is None:
            self._folder = _shared_folder(self._home)
        return self._folder

    def _request(
        self, code: ReleasedCode, places: tuple[Path, Path, Path], held: Held | None
    ) -> SandboxRequest:
        folder, _, program = places
        # A virtual environment: the folder above that of its programs.
        packages = () if held is None else (Path(held.python).parent.parent,)
        passed = child_environment() | self._command.variables()
        environment = {name: value for name, value in passed.items() if name in _PASSED or "THREADS" in name}
        return SandboxRequest(
            minimum=Level(code.minimum),
            readable=tuple(map(str, (*places, *packages))),
            folder=str(folder),
            # Devices of GPUs are not in a sandbox.
            environment={
                **environment,
                "PYTHONPATH": str(program),
                "NPROC": str(self._command.threads),
                "JAX_PLATFORMS": "cpu",
            },
            limits=limits_of(self._memory),
        )

    def _command_line(self, python: str, descriptor: int, code: Path) -> list[str]:
        return [
            # Without the working folder in the path of imports: it has the code.
            *(python, "-P", "-m", "workers.serving.child"),
            *("--socket", str(descriptor), "--code", str(code)),
            *("--max-batch", str(self._command.max_batch), "--max-programs", str(self._command.max_programs)),
        ]


def limits_of(memory: int) -> Limits:
    """Return the limits of a child: it computes, and has no reason to write or to start programs."""
    return Limits(
        memory_of_all=memory,
        process_memory=memory + RESERVED,
        processes_of_all=8,
        disk_of_all=256 * MIB,
        file_bytes=256 * MIB,
        # Its output goes to the log of the server. At the limit it is replaced.
        output_of_all=64 * MIB,
        # It runs for months.
        cpu_seconds=2**31,
    )


class _Started(NamedTuple):
    process: SandboxProcess
    watch: Watch
    lines: "_Lines"
    run: _Run
    model: Path
    held: Held | None
    orphans: Orphans

    def follow(self, loop: asyncio.AbstractEventLoop) -> "asyncio.Future[int]":
        """Wait for the end in a thread, and remove everything. Return the exit status that it will have."""
        ended: asyncio.Future[int] = loop.create_future()

        def wait() -> None:
            status = self._remove()
            # The server may have ended meanwhile.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(ended.set_result, status)

        threading.Thread(target=wait, name=f"end of {self.process.pid}", daemon=True).start()
        return ended

    def end(self) -> None:
        """End it, and wait until it has ended."""
        self.orphans.look()
        self.process.kill()

    def abandon(self) -> None:
        """End it and remove everything."""
        self.end()
        self._remove()

    def _remove(self) -> int:
        with self.orphans:
            try:
                return self._wait()
            finally:
                self.process.close()
                self.run.close()
                if self.held is not None:
                    self.held.release()

    def _wait(self) -> int:
        early = EARLY_LOOKS
        while True:
            self.orphans.look()
            try:
                return self.watch.wait(EARLY_LOOK_SECONDS if early else LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                early = max(0, early - 1)


class _Lines:
    """Logs the lines that a child prints, and keeps the last one."""

    def __init__(self, name: str) -> None:
        self._name, self._rest = name, b""
        self._lines: deque[str] = deque(maxlen=1)

    def receive(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        # A line without an end must not be kept for ever.
        if len(self._rest) > MAX_LINE:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            text = plain_text(line.decode(errors="replace"), limit=MAX_LINE)
            if text.strip():
                self._lines.append(text)
                code_logger.info("%s: %s", self._name, text)

    def last(self) -> str:
        return self._rest.decode(errors="replace").strip() or (self._lines[0] if self._lines else "")


def _put_files(run: _Run, version: SandboxedModel) -> tuple[Path, Path]:
    """Copy the code into the folder of a run; return its place, and that of the model file."""
    code = run.folder / "code"
    code.mkdir(mode=0o755)
    code.chmod(0o755)
    for name, source in version.files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise CodeRefused(f"a file of code cannot have the path {name[:100]!r}")
        for parent in reversed(path.parents[:-1]):
            (code / parent).mkdir(exist_ok=True)
            (code / parent).chmod(0o755)
        _copy(source, code / path)
    if run.user is None:
        return code, version.model
    # The cache is closed to other users.
    model = run.folder / version.model.name
    _copy(version.model, model)
    return code, model


def _put_program(run: _Run) -> Path:
    """Return a folder from which this program's packages are imported: theirs has other things beside."""
    program = run.folder / "program"
    program.mkdir(mode=0o755)
    program.chmod(0o755)
    for name in PACKAGES:
        (program / name).symlink_to(CODE_ROOT / name)
    return program


def _copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    target.chmod(0o444)


def _shared_folder(home: Path) -> Path:
    """Return an empty folder outside of the home, which is closed to the users of children.

    The files of a killed server in it are deleted.
    """
    digest = hashlib.sha256(str(home.resolve()).encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"trainyard-serving-{os.geteuid()}-{digest}"
    folder.mkdir(mode=0o711, exist_ok=True)
    found = folder.lstat()
    # Anyone can create a folder there.
    if folder.is_symlink() or not folder.is_dir() or found.st_uid != os.geteuid():
        return Path(tempfile.mkdtemp(prefix="trainyard-serving-"))
    folder.chmod(0o711)
    for left in folder.iterdir():
        shutil.rmtree(left, ignore_errors=True)
    return folder
