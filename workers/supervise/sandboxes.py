"""Starts runners with code of users, each in a sandbox of its own."""

import asyncio
import contextlib
import os
import shutil
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from jobs.contracts.control import Start
from jobs.contracts.sandbox import Level, LevelState, Limits, SandboxRequest, choose_level, refusal
from jobs.contracts.task_parts import OwnCode, Task, with_checkpoints, with_inputs
from workers.environments.folder import EnvironmentFolder, Held
from workers.forking.client import Child
from workers.isolation.access import INPUTS, Isolation, RunnerAccess
from workers.sandbox import usage
from workers.sandbox.gpus import GpuAccess
from workers.sandbox.launch import Owner, SandboxRefused, Starter, Streams, launch, spawn
from workers.sandbox.process import SandboxProcess
from workers.sandbox.view import CODE_ROOT, PACKAGES
from workers.sandbox.watch import Watch
from workers.supervise.environment import runner_environment
from workers.supervise.launcher import RunnerDescriptors, RunnerStart
from workers.supervise.runner_checkpoints import RunnerCheckpoints, unlink

WORK = "own-code"
"""The folder beside those of the attempts that has a folder for each runner, and in it one for each task."""
_CODE, _PROGRAM, _SCRATCH = "code", "program", "scratch"
_FOR_ALL = 0o755
_ENTER = 0o711


class SandboxNeeds(NamedTuple):
    """The needs of a task with code. Another task may use its runner only if it needs the same.

    Attributes:
        project: the project whose files it reads.
        code: its code.
        checkpoints: the folder of the checkpoints of its job.
        compile_cache: the folder of its compiled programs.
        limits: its limits.
        gpus: the GPUs that it uses; None for the CPU.
    """

    project: int | None
    code: OwnCode
    checkpoints: str
    compile_cache: str
    limits: Limits
    gpus: GpuAccess | None = None

    @property
    def has_job(self) -> bool:
        """Whether the code and the job are known."""
        return bool(self.code.digest)

    def before_job(self) -> "SandboxNeeds":
        """Return the needs of a runner that may get a task with these: all but its code and its job."""
        code = self.code.model_copy(update={"digest": "", "files": (), "folder": ""})
        root = str(Path(self.checkpoints).parent) if self.checkpoints else ""
        return self._replace(code=code, checkpoints=root)


class SandboxFolders(NamedTuple):
    """The folders of a runner in a sandbox.

    Attributes:
        inputs: files of its tasks, which it reads.
        code: its code, which it reads.
        program: has links to the packages of this program. Python must be able to list it, and the folder of
            the packages themselves may have other files.
        scratch: has its temporary folder.
        work: has a folder for each of its tasks, in which it writes.
    """

    inputs: Path
    code: Path
    program: Path
    scratch: Path
    work: Path

    @classmethod
    def of(cls, runner: Path, attempts: Path) -> "SandboxFolders":
        """Return the folders of a new runner.

        Args:
            runner: its folder.
            attempts: the folder of all attempts of the node.
        """
        # The results of a task are stored after its runner has ended, so they are in no folder of the runner.
        work = attempts / WORK / runner.name
        return cls(runner / INPUTS, runner / _CODE, runner / _PROGRAM, runner / _SCRATCH, work)


@dataclass
class Sandbox:
    """The sandbox of a runner.

    Attributes:
        process: its processes.
        watch: measures them.
        writable: the folders in which it writes.
        folders: its folders.
        access: its access to files, if it has a user of its own.
        checkpoints: the folder of its checkpoints; None if its tasks have none.
        packages: keeps the packages of its interpreter; None if it has no others than the worker.
        code: the code of its job; None before it has one.
    """

    process: SandboxProcess
    watch: Watch
    writable: tuple[str, ...]
    folders: SandboxFolders
    access: RunnerAccess | None
    checkpoints: RunnerCheckpoints | None
    packages: Held | None = None
    code: OwnCode | None = None

    def pids(self) -> list[int]:
        """Return its processes; none if they cannot be found, for which its watch ends it."""
        try:
            return self.process.processes()
        except usage.Unmeasurable:
            return []

    def assign(self, needs: SandboxNeeds) -> None:
        """Give it the code of its job, which it keeps until its end. Call it once, in a thread.

        Args:
            needs: of the tasks of the job; those of its start were the same, or `needs.before_job()`.

        Raises:
            OSError: the disk is full, or a folder cannot be moved.
        """
        # A standby has compiled programs there.
        for folder in self.folders.work.iterdir():
            remove_tree(folder)
        self.code = put_code(needs.code, self.folders.code)
        if self.checkpoints is not None:
            self.checkpoints.move_to(Path(needs.checkpoints), self.access)
        try:
            before = usage.disk(self.writable, ())
        except usage.Unmeasurable as error:
            raise OSError(f"the folders of a run cannot be measured: {error}") from error
        self.watch.begin(before=before)

    def hand_over(self, task: Task, attempt: int) -> Start:
        """Give the runner the files of a task.

        Raises:
            OSError: the disk is full, or a file cannot be shared.
        """
        folder = self.folders.work / str(attempt)
        shutil.rmtree(folder, ignore_errors=True)
        # It inherits the rights of the folder around it.
        folder.mkdir()
        placed = with_inputs(
            task.model_copy(update={"code": None}), lambda path: str(self._read_only(Path(path)))
        )
        if (own := self.checkpoints) is not None:
            placed = with_checkpoints(placed, lambda path: own.link(path, self.folders.inputs))
            seen = str(own.path_for(self.process.record.level))
            placed = placed.model_copy(update={"checkpoints": seen})
        placed = placed.model_copy(update={"folder": str(folder), "code": self.code})
        file = self.folders.inputs / f"task-{attempt}.json"
        file.write_text(placed.model_dump_json())
        file.chmod(0o644)
        return Start(task=str(file))

    def _read_only(self, file: Path) -> Path:
        if self.access is not None:
            return self.access.read_only(file)
        link = self.folders.inputs / file.name
        if not link.exists():
            try:
                os.link(file, link, follow_symlinks=False)
            except OSError:
                shutil.copyfile(file, link)
        return link

    def withdraw(self, attempt: int) -> None:
        """Withdraw the files of a task, except inputs, which the next task of the job needs again."""
        (self.folders.inputs / f"task-{attempt}.json").unlink(missing_ok=True)
        unlink(self.folders.inputs)

    def close(self) -> None:
        """End all processes and delete its folders. That of its tasks stays until their files are stored."""
        self.process.close()
        self.watch.stop()
        if self.packages is not None:
            self.packages.release()
        if self.code is None:
            # Only a standby has written there, and nothing in it is kept.
            remove_tree(self.folders.work)
        remove_if_empty(self.folders.work)
        if self.checkpoints is not None:
            self.checkpoints.close()


@dataclass(frozen=True)
class SandboxedChild(Child):
    """A started runner in a sandbox."""

    sandbox: Sandbox


@dataclass
class Sandboxes:
    """The sandboxes that this machine offers. `open` gives the levels, once they are found.

    Attributes:
        attempts: the folder of all attempts of the node.
        readable: the folders of further packages that runners import.
        environments: has the packages of code.
    """

    attempts: Path
    readable: tuple[str, ...] = ()
    environments: EnvironmentFolder | None = None
    states: "asyncio.Future[tuple[LevelState, ...]]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    have_own_users: bool = field(default_factory=lambda: os.geteuid() == 0)
    """Whether each runner needs a user of its own: only a worker that is root can give it one."""
    # A sandbox ends with the thread that started it, so it needs one that lives as long as the node.
    _starter: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "sandboxes"))

    async def require(self, minimum: Level) -> Level:
        """Return the level of a run with this minimum.

        Raises:
            SandboxRefused: the machine has none.
        """
        states = await asyncio.shield(self.states)
        level = choose_level(states, minimum)
        if level is None:
            raise SandboxRefused(refusal(states, minimum))
        return level

    def prepare(
        self,
        needs: SandboxNeeds,
        runner: Path,
        isolation: Isolation | None,
        module: str,
        start: Starter = spawn,
    ) -> "SandboxLauncher":
        """Make the folders of a new runner. Call it in a thread.

        Args:
            needs: of its tasks, with its job or before it has one.
            runner: its folder.
            isolation: gives it a user of its own.
            module: the module that it executes.
            start: starts its process.

        Raises:
            OSError: the disk is full, or a file is missing.
        """
        folders = SandboxFolders.of(runner, self.attempts)
        packages = self._hold(needs.code.python)
        access = None
        try:
            access = None if isolation is None else isolation.create_access(runner)
            folders.inputs.mkdir(exist_ok=True)
            for folder in (folders.code, folders.program, folders.scratch):
                folder.mkdir()
                # Only this runner can enter the folder around them.
                folder.chmod(_ENTER if folder == folders.scratch else _FOR_ALL)
            self.link_program(folders.program)
            for path in (str(folders.work), needs.compile_cache):
                if path and access is not None:
                    access.grant(Path(path))
                elif path:
                    Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)
            checkpoints = _checkpoints_of(needs, runner, access) if needs.checkpoints else None
        except BaseException:
            if access is not None:
                access.close()
            if packages is not None:
                packages.release()
            raise
        code = needs.code
        return SandboxLauncher(
            request=self._request(needs, folders, checkpoints),
            command=((not code.own_versions and code.python) or sys.executable, "-m", module),
            states=self.states.result(), folders=folders, access=access, checkpoints=checkpoints,
            packages=packages, starter=self._starter, start=start,
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

    @property
    def starter(self) -> ThreadPoolExecutor:
        """The thread that starts all sandboxes."""
        return self._starter

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
        own = "" if checkpoints is None else str(checkpoints.made)
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

    def close(self) -> None:
        """End the thread. All runners must have ended."""
        self.states.cancel()
        self._starter.shutdown(wait=False)


@dataclass(frozen=True)
class SandboxLauncher:
    """Starts one runner in a sandbox."""

    request: SandboxRequest
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
        watch = Watch(process, self.request.writable, printed=descriptors.printed, waits=True).start()
        sandbox = Sandbox(
            process, watch, self.request.writable, self.folders, self.access, self.checkpoints,
            packages=self.packages,
        )  # fmt: skip
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


def _checkpoints_of(needs: SandboxNeeds, runner: Path, access: RunnerAccess | None) -> RunnerCheckpoints:
    folder = Path(needs.checkpoints)
    if not needs.has_job:
        return RunnerCheckpoints.create(folder, runner, access)
    return RunnerCheckpoints.create(folder.parent, runner, access, job=folder)


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


def remove_tree(folder: Path) -> None:
    """Delete a folder that code of users has written."""
    # Folders may be nested deeper than Python can follow.
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)


def remove_if_empty(folder: Path) -> None:
    """Remove a folder, unless something is in it."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def put_code(code: OwnCode, folder: Path) -> OwnCode:
    """Copy files of users into a folder, and return the code with their new places."""
    files = []
    for file in code.files:
        relative = PurePosixPath(file.path)
        if relative.is_absolute() or ".." in relative.parts:
            raise ValueError(f"a file of code cannot have the path {file.path!r}")
        place = folder / relative
        for parent in reversed(place.relative_to(folder).parents[:-1]):
            (folder / parent).mkdir(exist_ok=True)
            (folder / parent).chmod(_FOR_ALL)
        shutil.copyfile(file.place, place)
        place.chmod(0o644)
        files.append(file.model_copy(update={"place": str(place)}))
    return code.model_copy(update={"files": tuple(files), "folder": str(folder)})


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
