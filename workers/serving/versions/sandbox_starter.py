"""Starts model children with code of users, each in a sandbox of its own.

They are forks of the fork server of ordinary children: it executes no models and no code of users, has the
environment of ordinary children, and gets no secret, so a fork begins with nothing but imports.
"""

import asyncio
import logging
import os
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from subprocess import PIPE, STDOUT

from jobs.messages.release import ReleasedCode
from jobs.messages.sandbox import MIB, LevelState, Limits, SandboxRequest, present_level
from workers.confinement.environments.folder import Held
from workers.confinement.forking.sandbox_forks import SandboxForks
from workers.confinement.isolation.users import VARIABLE, RunnerUser, RunnerUsers, UidRange
from workers.confinement.sandbox.launch import (
    Owner,
    SandboxRefused,
    Starter,
    Streams,
    launch,
    spawn,
)
from workers.confinement.sandbox.levels import find_levels, wanted_levels
from workers.confinement.sandbox.watch import Watch
from workers.serving.versions.child_folder import ChildFolder, shared_folder
from workers.serving.versions.child_process import SEND_BUFFER_BYTES, child_environment
from workers.serving.versions.child_starter import FORK_SECONDS
from workers.serving.versions.code_packages import PackagesMissing, install
from workers.serving.versions.orphans import Orphans, reaping
from workers.serving.versions.sandboxed_child import SandboxedChild
from workers.serving.versions.sandboxed_model import CodeRefused, SandboxedModel, SandboxSettings
from workers.serving.versions.started_sandbox import Lines, StartedSandbox

logger = logging.getLogger("trainyard.serving")
GIB = 2**30
# Beside the memory in use, JAX and the allocator reserve memory that they never touch.
RESERVED = GIB
WATCH_SECONDS = 0.25
"""The time between two measurements: more often takes a share of a core for each version."""
_PASSED = ("LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "XLA_FLAGS", "PYTHONUNBUFFERED")


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
        packages = await self._packages_of(version, states)
        try:
            return await self._start_with(packages, version)
        except BaseException:
            if packages is not None:
                packages.release()
            raise

    async def _packages_of(self, version: SandboxedModel, states: tuple[LevelState, ...]) -> Held | None:
        """Return the packages of the code, which are installed if they are missing; None if it has none."""
        installing = asyncio.ensure_future(asyncio.to_thread(self._install, version, states))
        try:
            return await asyncio.shield(installing)
        except PackagesMissing as error:
            raise CodeRefused(str(error)) from error
        except asyncio.CancelledError:
            # The thread continues, maybe for minutes.
            installing.add_done_callback(_release)
            raise

    async def _start_with(
        self, packages: Held | None, version: SandboxedModel
    ) -> tuple[SandboxedChild, Path]:
        """Start a child. Its packages are released at its end."""
        loop = asyncio.get_running_loop()
        server = await self._fork_server()
        starter = spawn if server is None else SandboxForks(server, FORK_SECONDS)
        router_socket, child_socket = socket.socketpair()
        router_socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        with ExitStack() as undo:
            undo.callback(router_socket.close)
            with child_socket:
                start = partial(self._start, packages, version, child_socket.fileno(), starter)
                started = await self._in_starter(start)
            try:
                _, child = await loop.create_unix_connection(SandboxedChild, sock=router_socket)
            except BaseException:
                await asyncio.shield(asyncio.to_thread(started.abandon))
                raise
            undo.pop_all()
        child.attach(started.process, started.watch, started.lines.last, started.follow(loop), started.end)
        return child, started.model

    async def _in_starter(self, start: Callable[[], StartedSandbox]) -> StartedSandbox:
        """Call a function in the thread that starts all sandboxes."""
        starting = asyncio.get_running_loop().run_in_executor(self._starter, start)
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            # The thread uses the socket until then.
            await asyncio.wait({starting})
            if starting.exception() is None:
                await asyncio.to_thread(starting.result().abandon)
            raise

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
        self, packages: Held | None, version: SandboxedModel, descriptor: int, starter: Starter
    ) -> StartedSandbox:
        with ExitStack() as undo:
            files = self._new_files()
            undo.callback(files.close)
            code, model = files.put_files(version)
            request = self._request(version.code, (code, model, files.put_program()), packages)
            streams = Streams(stdout=PIPE, stderr=STDOUT, keep=(descriptor,))
            python = sys.executable if packages is None else packages.python
            try:
                process = launch(
                    request,
                    self._command_line(python, descriptor, code),
                    self._levels(),
                    owner=files.owner,
                    streams=streams,
                    scratch=files.folder,
                    start=starter,
                )
            except SandboxRefused as error:
                raise CodeRefused(str(error)) from error
            undo.callback(process.close)
            lines = Lines(version.name)
            watch = Watch(process, request.writable, interval=WATCH_SECONDS).start()
            assert process.stdout is not None  # noqa: S101  it is a pipe
            watch.read(process.stdout, lines.receive)
            undo.pop_all()
        logger.info("%s runs in a sandbox of the level %s", version.name, process.record.level)
        return StartedSandbox(process, watch, lines, files, model, packages, Orphans(process))

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

    def _new_files(self) -> ChildFolder:
        """Return a new folder for a child, in one that other users may enter but not list, with its user."""
        files = ChildFolder(Path(tempfile.mkdtemp(prefix="run-", dir=self._place())))
        try:
            files.folder.chmod(0o711)
            files.user = self._claim()
        except BaseException:
            files.close()
            raise
        return files

    def _place(self) -> Path:
        if self._folder is None:
            self._folder = shared_folder(self._home)
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
            minimum=present_level(code.minimum),
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


def _release(installing: "asyncio.Future[Held | None]") -> None:
    """Release packages for which no child waits any more."""
    if installing.cancelled() or installing.exception() is not None:
        return
    if (packages := installing.result()) is not None:
        packages.release()
