"""Starts runners with code of users, each in a sandbox of its own."""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from jobs.messages.sandbox import LevelState, SandboxRequest
from jobs.messages.task import OwnCode
from workers.confinement.environments.folder import EnvironmentFolder, Held
from workers.confinement.isolation.access import Isolation, RunnerAccess
from workers.confinement.sandbox import usage
from workers.confinement.sandbox.launch import (
    Owner,
    Starter,
    Streams,
    launch,
    spawn,
)
from workers.confinement.sandbox.process import SandboxProcess
from workers.confinement.sandbox.view import CODE_ROOT, PACKAGES
from workers.confinement.sandbox.watch import Watch
from workers.confinement.start.starter import CodeStarter
from workers.supervise.pool.launcher import RunnerDescriptors, RunnerStart
from workers.supervise.pool.runner_checkpoints import RunnerCheckpoints
from workers.supervise.pool.runner_sandbox import Sandbox, SandboxedChild, SandboxNeeds
from workers.supervise.pool.sandbox_folders import (
    ENTER,
    FOR_ALL,
    SandboxFolders,
    put_code,
    remove_if_empty,
)
from workers.system.environment import runner_environment


@dataclass
class Sandboxes(CodeStarter):
    """Starts the code of users of a node: runners, and models beside a task.

    Attributes:
        attempts: the folder of all attempts of the node.
        readable: the folders of further packages that runners import.
        environments: has the packages of code.
    """

    attempts: Path
    readable: tuple[str, ...] = ()
    environments: EnvironmentFolder | None = None
    have_own_users: bool = field(default_factory=lambda: os.geteuid() == 0)
    """Whether each runner needs a user of its own: only a worker that is root can give it one."""

    def prepare(
        self,
        needs: SandboxNeeds,
        runner: Path,
        isolation: Isolation | None,
        module: str,
        start: Starter = spawn,
    ) -> "SandboxLauncher":
        """Make the folders of a new runner, with the code of its job. Call it in a thread.

        Args:
            needs: of its tasks.
            runner: its folder.
            isolation: gives it a user of its own.
            module: the module that it executes.
            start: starts its process.

        Raises:
            OSError: the disk is full, or a file is missing.
        """
        folders = SandboxFolders.of(runner, self.attempts)
        packages = self._hold(needs.code.python)
        access = checkpoints = None
        try:
            access = None if isolation is None else isolation.create_access(runner)
            folders.inputs.mkdir(exist_ok=True)
            for folder in (folders.code, folders.program, folders.scratch):
                folder.mkdir()
                # Only this runner can enter the folder around them.
                folder.chmod(ENTER if folder == folders.scratch else FOR_ALL)
            self.link_program(folders.program)
            for path in (str(folders.work), needs.compile_cache):
                if path and access is not None:
                    access.grant(Path(path))
                elif path:
                    Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)
            code = put_code(needs.code, folders.code)
            if needs.checkpoints:
                checkpoints = RunnerCheckpoints.create(Path(needs.checkpoints), runner, access)
            request = self._request(needs, folders, checkpoints)
            before = _bytes_in(request.writable)
        except BaseException:
            if checkpoints is not None:
                checkpoints.close()
            if access is not None:
                access.close()
            if packages is not None:
                packages.release()
            raise
        return SandboxLauncher(
            request=request, code=code, before=before,
            command=((not code.own_versions and code.python) or sys.executable, "-m", module),
            states=self.states.result(), folders=folders, access=access, checkpoints=checkpoints,
            packages=packages, starter=self._thread, start=start,
        )  # fmt: skip

    def _hold(self, python: str) -> Held | None:
        """Keep the packages of an interpreter from being removed; None if it is that of the worker.

        Raises:
            OSError: they have been removed.
        """
        if not python or self.environments is None:
            return None
        folder = Path(python).parents[2]
        if folder.parent != self.environments.root:
            return None
        held = self.environments.hold(folder.name)
        if held is None:
            raise OSError("the packages of the code were removed meanwhile")
        return held

    def link_program(self, folder: Path) -> None:
        """Put links to the packages of this program, and to further ones, into a folder."""
        for package in (*(CODE_ROOT / name for name in PACKAGES), *map(Path, self.readable)):
            (folder / package.name).symlink_to(package)

    def _request(
        self, needs: SandboxNeeds, folders: SandboxFolders, checkpoints: RunnerCheckpoints | None
    ) -> SandboxRequest:
        code, gpus = needs.code, needs.gpus
        # A virtual environment: the folder above that of its programs.
        packages = (str(Path(code.python).parent.parent),) if code.python else ()
        own = "" if checkpoints is None else str(checkpoints.place)
        writable = (str(folders.work), own, needs.compile_cache)
        return SandboxRequest(
            minimum=code.minimum,
            readable=(
                *(str(folder) for folder in (folders.inputs, folders.code, folders.program)),
                *packages,
                *self.readable,
                *(gpus.readable if gpus is not None else ()),
            ),
            devices=gpus.devices if gpus is not None else (),
            writable=tuple(path for path in writable if path),
            folder=str(folders.work),
            network=code.network,
            environment=runner_environment(folders.work, devices=gpus.visible if gpus is not None else None)
            | {"PYTHONPATH": str(folders.program)},
            limits=needs.limits,
        )


@dataclass(frozen=True)
class SandboxLauncher:
    """Starts one runner in a sandbox.

    Attributes:
        before: the bytes in its writable folders before its start, which do not count.
    """

    request: SandboxRequest
    code: OwnCode
    before: int
    command: Sequence[str]
    states: Sequence[LevelState]
    folders: SandboxFolders
    access: RunnerAccess | None
    checkpoints: RunnerCheckpoints | None
    packages: Held | None
    starter: ThreadPoolExecutor
    start: Starter

    def close(self) -> None:
        """Withdraw the access of a runner that was not started, and remove its folder for tasks."""
        if self.packages is not None:
            self.packages.release()
        if self.checkpoints is not None:
            self.checkpoints.close()
        if self.access is not None:
            self.access.close()
        remove_if_empty(self.folders.work)

    async def launch(self, start: RunnerStart, descriptors: RunnerDescriptors) -> SandboxedChild:
        """Start the runner. Its folder and its environment are those of the request.

        Raises:
            OSError: it could not be started.
            SandboxRefused: no level is strong enough.
        """
        del start
        process = await started_in(self.starter, partial(self._launch, descriptors))
        watch = Watch(process, self.request.writable, printed=descriptors.printed, before=self.before).start()
        sandbox = Sandbox(
            process, watch, self.folders, self.access, self.checkpoints, self.code, packages=self.packages
        )
        return SandboxedChild(process.pid, end_of(process), sandbox)

    def _launch(self, descriptors: RunnerDescriptors) -> SandboxProcess:
        # The process is root's child, but has its own user; the group is that of all runners.
        owner = None if self.access is None else Owner(self.access.user.uid, self.access.group)
        streams = Streams(
            descriptors.stdin, descriptors.stdout, descriptors.stderr, keep=(descriptors.events,)
        )
        command = (*self.command, "--events-fd", str(descriptors.events))
        return launch(
            self.request, command, self.states, owner=owner, streams=streams, scratch=self.folders.scratch,
            start=self.start,
        )  # fmt: skip


def _bytes_in(folders: Iterable[str]) -> int:
    try:
        return usage.disk(folders, ())
    except usage.Unmeasurable as error:
        raise OSError(f"the folders of a run cannot be measured: {error}") from error


async def started_in(starter: ThreadPoolExecutor, start: Callable[[], SandboxProcess]) -> SandboxProcess:
    """Return what `start` returns in the thread that starts all sandboxes."""
    starting = asyncio.get_running_loop().run_in_executor(starter, start)
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # The thread uses the descriptors until then.
        await asyncio.wait({starting})
        if starting.exception() is None:
            await asyncio.to_thread(starting.result().close)
        raise


def further_packages(module: str) -> tuple[str, ...]:
    """Return the folder of the package of another runner module, which tests set; none for the usual one."""
    package = module.partition(".")[0]
    return () if package in PACKAGES else (str(CODE_ROOT / package),)


def end_of(process: SandboxProcess) -> "asyncio.Future[int]":
    """Return the exit status of a sandbox, once it has ended."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def report() -> None:
        if not ended.done():
            ended.set_result(process.wait())

    def wait() -> None:
        process.wait_unreaped()
        # The node may have ended meanwhile.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(report)

    threading.Thread(target=wait, name=f"end of {process.pid}", daemon=True).start()
    return ended
