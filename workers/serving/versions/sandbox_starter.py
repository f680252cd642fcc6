"""Starts model children with user code, each in its own sandbox.

They are forked from the ordinary children's fork server: it executes no models and no user code, has the
environment of ordinary children, and gets no secret, so a fork begins with nothing but imports.
"""

import asyncio
import logging
import shutil
import socket
import sys
import tempfile
import threading
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from subprocess import PIPE, STDOUT

from jobs.messages.sandbox import MIB, LevelState, Limits, SandboxRequest, present_level
from workers.confinement.environments.folder import Held
from workers.confinement.sandbox.launch import SandboxRefused, Streams
from workers.confinement.sandbox.levels import allowed_levels, find_levels
from workers.confinement.sandbox.watch import Watch
from workers.confinement.start.files import ENTER, ProcessFiles, packages_of
from workers.confinement.start.process import CodeProcess, ProcessStart
from workers.confinement.start.starter import CodeStarter, starter_for
from workers.confinement.start.threads import call_in_thread, undone_on_error
from workers.serving.versions.child_folder import shared_folder
from workers.serving.versions.child_process import SEND_BUFFER_BYTES, child_environment
from workers.serving.versions.child_starter import FORK_SECONDS
from workers.serving.versions.child_users import claim_user, claimed_owner
from workers.serving.versions.code_packages import PackagesMissing, install
from workers.serving.versions.orphans import Orphans, reaping
from workers.serving.versions.sandboxed_child import SandboxedChild
from workers.serving.versions.sandboxed_model import CodeRefused, SandboxedModel, SandboxSettings
from workers.serving.versions.started_sandbox import StartedSandbox, log_lines
from workers.system.environment import thread_variables

logger = logging.getLogger("trainyard.serving")
GIB = 2**30
# Beside the memory in use, JAX and the allocator reserve memory that they never touch.
RESERVED = GIB
WATCH_SECONDS = 0.25
"""The time between two measurements: more often takes a share of a core for each version."""
_PASSED = ("LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "XLA_FLAGS", "PYTHONUNBUFFERED")


class SandboxStarter:
    """Starts children in sandboxes; see `Sandboxes`. Create it in the event loop."""

    def __init__(self, settings: SandboxSettings) -> None:
        self._home, self._command, self._memory, self._environments, self._fork_server = settings
        self._code = CodeStarter()
        self._closing = threading.Event()
        self._finding = asyncio.Lock()
        self._folder: Path | None = None

    async def start(self, version: SandboxedModel) -> tuple[SandboxedChild, Path]:
        """Return a new child without a model, and the path to its model file, which it can read.

        Raises:
            CodeRefused: this machine offers no sandbox that is strong enough.
            OSError: it could not be started.
        """
        folder, states = await self._place_and_levels()
        packages = await self._packages_of(version, states)
        # From here on, the packages are released with the files.
        make_files = partial(self._make_files, folder, version, packages)
        files, model = await call_in_thread(make_files, lambda result: result[0].close())
        async with undone_on_error(files.close):
            return await self._start_child(version, files, model), model

    async def _place_and_levels(self) -> tuple[Path, tuple[LevelState, ...]]:
        """Return the folder for all children, and this machine's levels, which are tried in it once."""
        states = self._code.states
        async with self._finding:
            if self._folder is None:
                self._folder = await asyncio.to_thread(shared_folder, self._home)
            if not states.done():
                states.set_result(await asyncio.to_thread(self._find_levels, self._folder))
        return self._folder, states.result()

    def _find_levels(self, folder: Path) -> tuple[LevelState, ...]:
        try:
            allowed = allowed_levels()
        except ValueError as error:
            raise CodeRefused(str(error)) from error
        with reaping(), claimed_owner(self._home) as owner:
            claim = None if owner is None else lambda: owner
            return find_levels(claim, parent=folder, allowed=allowed)

    async def _packages_of(self, version: SandboxedModel, states: tuple[LevelState, ...]) -> Held | None:
        """Return the packages for the code, which are installed if they are missing; None if it has none."""
        installing = asyncio.ensure_future(asyncio.to_thread(self._install, version, states))
        try:
            return await asyncio.shield(installing)
        except PackagesMissing as error:
            raise CodeRefused(str(error)) from error
        except asyncio.CancelledError:
            # The thread continues, maybe for minutes.
            installing.add_done_callback(_release)
            raise

    def _install(self, version: SandboxedModel, states: tuple[LevelState, ...]) -> Held | None:
        claim = partial(claimed_owner, self._home)
        with reaping():
            return install(version.name, version.code, self._environments, states, claim, self._closing)

    def _make_files(
        self, folder: Path, version: SandboxedModel, packages: Held | None
    ) -> tuple[ProcessFiles, Path]:
        """Return the files for a new child, and the path to its model file."""
        with ExitStack() as undo:
            if packages is not None:
                undo.callback(packages.release)
            # Other users may enter it, but not list it.
            place = Path(tempfile.mkdtemp(prefix="run-", dir=folder))
            files = ProcessFiles(place, packages=packages)
            undo.callback(files.close)
            place.chmod(ENTER)
            files.user = claim_user(self._home)
            try:
                files.fill(version.files)
            except ValueError as error:
                raise CodeRefused(str(error)) from error
            # The cache of model files is closed to other users.
            model = version.model if files.user is None else files.read_only(version.model)
            undo.pop_all()
        return files, model

    async def _start_child(self, version: SandboxedModel, files: ProcessFiles, model: Path) -> SandboxedChild:
        """Start a child, and connect to it. Its files are closed at its end."""
        router_socket, child_socket = socket.socketpair()
        router_socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        with ExitStack() as undo:
            undo.callback(router_socket.close)
            with child_socket:
                started = await self._start(version, files, model, child_socket.fileno())
            async with undone_on_error(started.abandon):
                loop = asyncio.get_running_loop()
                _, child = await loop.create_unix_connection(SandboxedChild, sock=router_socket)
                child.attach(started)
            undo.pop_all()
        return child

    async def _start(
        self, version: SandboxedModel, files: ProcessFiles, model: Path, descriptor: int
    ) -> StartedSandbox:
        start = ProcessStart(
            self._request(version, files, model),
            self._command_line(files, descriptor),
            files,
            Streams(stdout=PIPE, stderr=STDOUT, keep=(descriptor,)),
            starter_for(await self._fork_server(), FORK_SECONDS),
            log_lines(version.name),
            partial(Watch, interval=WATCH_SECONDS),
        )
        try:
            process = await self._code.start(start, _discard)
        except SandboxRefused as error:
            raise CodeRefused(str(error)) from error
        level = process.process.record.level
        logger.info("%s runs in a sandbox of the level %s", version.name, level)
        orphans = Orphans(process.process)
        return StartedSandbox(process.process, process.watch, process.lines, files, model, orphans)

    def _request(self, version: SandboxedModel, files: ProcessFiles, model: Path) -> SandboxRequest:
        environment = {
            name: value
            for name, value in (child_environment() | self._command.variables()).items()
            if name in _PASSED
        }
        packages = () if files.packages is None else packages_of(files.packages.python)
        return SandboxRequest(
            minimum=present_level(version.code.minimum),
            readable=(*files.readable, *packages, *([] if files.user is not None else [str(model)])),
            folder=str(files.code),
            environment={
                **environment,
                **thread_variables(self._command.threads),
                "PYTHONPATH": str(files.program),
                # Devices of GPUs are not in a sandbox.
                "JAX_PLATFORMS": "cpu",
            },
            limits=limits_of(self._memory),
        )

    def _command_line(self, files: ProcessFiles, descriptor: int) -> list[str]:
        python = sys.executable if files.packages is None else files.packages.python
        return [
            # Without the working folder in the path of imports: it has the code.
            *(python, "-P", "-m", "workers.serving.child"),
            *("--socket", str(descriptor), "--code", str(files.code)),
            *("--max-batch", str(self._command.max_batch), "--max-programs", str(self._command.max_programs)),
        ]

    async def close(self) -> None:
        """End what starts children. They must all have ended."""
        self._closing.set()
        await self._code.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def limits_of(memory: int) -> Limits:
    """Return the limits for a child: it computes, and has no reason to write or to start programs."""
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


def _discard(process: CodeProcess) -> None:
    """End a child whose start was cancelled."""
    with Orphans(process.process) as orphans:
        orphans.look()
        process.close()


def _release(installing: "asyncio.Future[Held | None]") -> None:
    """Release packages for which no child waits any more."""
    if installing.cancelled() or installing.exception() is not None:
        return
    if (packages := installing.result()) is not None:
        packages.release()
