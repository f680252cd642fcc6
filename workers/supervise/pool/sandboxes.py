"""Starts runners with user code, each in its own sandbox."""

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from jobs.messages.sandbox import SandboxRequest
from jobs.messages.task import OwnCode
from workers.confinement.environments.folder import EnvironmentFolder, Held
from workers.confinement.isolation.access import Isolation
from workers.confinement.sandbox import usage
from workers.confinement.sandbox.launch import Starter, Streams, spawn
from workers.confinement.sandbox.view import CODE_ROOT, PACKAGES
from workers.confinement.sandbox.watch import Watch
from workers.confinement.start.files import ProcessFiles, packages_of
from workers.confinement.start.process import ProcessStart
from workers.confinement.start.starter import CodeStarter
from workers.confinement.start.threads import undone_on_error
from workers.supervise.pool.code_files import code_in, code_places
from workers.supervise.pool.launcher import RunnerDescriptors, RunnerStart
from workers.supervise.pool.runner_checkpoints import RunnerCheckpoints
from workers.supervise.pool.runner_sandbox import WORK, Sandbox, SandboxedChild, SandboxNeeds, remove_if_empty
from workers.system.environment import runner_environment


@dataclass
class Sandboxes(CodeStarter):
    """Starts user code on a node: runners, and models beside a task.

    Attributes:
        attempts: the folder for all attempts on the node.
        readable: folders with further packages that runners import.
        environments: has the packages for code.
        have_own_users: whether each process needs its own user: only a worker that is root can give it
            one.
    """

    attempts: Path
    readable: tuple[str, ...] = ()
    environments: EnvironmentFolder | None = None
    have_own_users: bool = field(default_factory=lambda: os.geteuid() == 0)

    def prepare(
        self,
        needs: SandboxNeeds,
        runner: Path,
        isolation: Isolation | None,
        module: str,
        start: Starter = spawn,
    ) -> "SandboxLauncher":
        """Make the files for a new runner, with its job's code. Call it in a thread.

        Args:
            needs: its tasks'.
            runner: its folder, which is deleted if this fails.
            isolation: gives it its own user.
            module: the module that it executes.
            start: starts its process.

        Raises:
            OSError: the disk is full, or a file is missing.
        """
        with ExitStack() as undo:
            files = ProcessFiles.create(runner, isolation)
            undo.callback(files.close)
            files.packages = self._hold(needs.code.python)
            files.fill(code_places(needs.code), map(Path, self.readable))
            work = self.attempts / WORK / runner.name
            undo.callback(remove_if_empty, work)
            for path in (str(work), needs.compile_cache):
                if path and files.access is not None:
                    files.access.grant(Path(path))
                elif path:
                    Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)
            checkpoints = None
            if needs.checkpoints:
                checkpoints = RunnerCheckpoints.create(Path(needs.checkpoints), runner, files.access)
                undo.callback(checkpoints.close)
            request = self._request(needs, files, work, checkpoints)
            launcher = SandboxLauncher(
                sandboxes=self, request=request, code=code_in(files.code, needs.code),
                bytes_before=_bytes_in(request.writable),
                command=((not needs.code.own_versions and needs.code.python) or sys.executable, "-m", module),
                files=files, work=work, checkpoints=checkpoints, start=start,
            )  # fmt: skip
            undo.pop_all()
        return launcher

    def _hold(self, python: str) -> Held | None:
        """Keep an interpreter's packages from being removed; None for the worker's interpreter.

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

    def _request(
        self, needs: SandboxNeeds, files: ProcessFiles, work: Path, checkpoints: RunnerCheckpoints | None
    ) -> SandboxRequest:
        code, gpus = needs.code, needs.gpus
        checkpoint_folder = "" if checkpoints is None else str(checkpoints.place)
        writable = (str(work), checkpoint_folder, needs.compile_cache)
        return SandboxRequest(
            minimum=code.minimum,
            readable=(
                *files.readable,
                *packages_of(code.python),
                *self.readable,
                *(gpus.readable if gpus is not None else ()),
            ),
            devices=gpus.devices if gpus is not None else (),
            writable=tuple(path for path in writable if path),
            folder=str(work),
            network=code.network,
            environment=runner_environment(work, devices=gpus.visible if gpus is not None else None)
            | {"PYTHONPATH": str(files.program)},
            limits=needs.limits,
        )


@dataclass(frozen=True)
class SandboxLauncher:
    """Starts one runner in a sandbox.

    Attributes:
        bytes_before: the bytes in its writable folders before its start, which do not count.
    """

    sandboxes: Sandboxes
    request: SandboxRequest
    code: OwnCode
    bytes_before: int
    command: Sequence[str]
    files: ProcessFiles
    work: Path
    checkpoints: RunnerCheckpoints | None
    start: Starter

    def close(self) -> None:
        """Close the files for a runner that was not started, and remove its folder for tasks."""
        if self.checkpoints is not None:
            self.checkpoints.close()
        self.files.close()
        remove_if_empty(self.work)

    async def launch(self, start: RunnerStart, descriptors: RunnerDescriptors) -> SandboxedChild:
        """Start the runner. The request has its folder and environment.

        Raises:
            OSError: it could not be started.
            SandboxRefused: no level is strong enough.
        """
        del start
        process = await self.sandboxes.start(
            ProcessStart(
                self.request,
                (*self.command, "--events-fd", str(descriptors.events)),
                self.files,
                Streams(
                    descriptors.stdin, descriptors.stdout, descriptors.stderr, keep=(descriptors.events,)
                ),
                self.start,
                watch=partial(Watch, printed=descriptors.printed, before=self.bytes_before),
            )
        )
        sandbox = Sandbox(
            process.process, process.watch, None, self.files, self.work, self.checkpoints, self.code
        )
        async with undone_on_error(sandbox.close):
            return SandboxedChild(sandbox.process.pid, sandbox.follow(), sandbox)


def _bytes_in(folders: Iterable[str]) -> int:
    try:
        return usage.disk(folders, ())
    except usage.Unmeasurable as error:
        raise OSError(f"the folders of a run cannot be measured: {error}") from error


def further_packages(module: str) -> tuple[str, ...]:
    """Return the folder with another runner module's package, which tests set; none for the usual one."""
    package = module.partition(".")[0]
    return () if package in PACKAGES else (str(CODE_ROOT / package),)
