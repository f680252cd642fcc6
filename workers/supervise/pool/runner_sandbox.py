"""The sandbox of one runner with code of users: its needs, its processes, and the files of its tasks."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from jobs.messages.sandbox import Limits
from jobs.messages.task import OwnCode
from workers.confinement.environments.folder import Held
from workers.confinement.forking.client import Child
from workers.confinement.isolation.access import RunnerAccess
from workers.confinement.sandbox import usage
from workers.confinement.sandbox.gpus import GpuAccess
from workers.confinement.sandbox.process import SandboxProcess
from workers.confinement.sandbox.watch import Watch
from workers.supervise.pool.runner_checkpoints import RunnerCheckpoints, unlink
from workers.supervise.pool.sandbox_folders import SandboxFolders, remove_if_empty


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


@dataclass
class Sandbox:
    """The sandbox of a runner.

    Attributes:
        process: its processes.
        watch: measures them.
        folders: its folders.
        access: its access to files, if it has a user of its own.
        checkpoints: the folder of its checkpoints; None if its tasks have none.
        code: the code of its job, in its folder.
        packages: keeps the packages of its interpreter; None if it has no others than the worker.
    """

    process: SandboxProcess
    watch: Watch
    folders: SandboxFolders
    access: RunnerAccess | None
    checkpoints: RunnerCheckpoints | None
    code: OwnCode
    packages: Held | None = None

    def pids(self) -> list[int]:
        """Return its processes; none if they cannot be found, for which its watch ends it."""
        try:
            return self.process.processes()
        except usage.Unmeasurable:
            return []

    def make_work_folder(self, attempt: int) -> Path:
        """Return an empty folder in which the runner writes the files of an attempt."""
        folder = self.folders.work / str(attempt)
        shutil.rmtree(folder, ignore_errors=True)
        # It inherits the rights of the folder around it.
        folder.mkdir()
        return folder

    def task_file(self, attempt: int) -> Path:
        """Return the place of the file with the task of an attempt."""
        return self.folders.inputs / f"task-{attempt}.json"

    def read_only(self, file: Path) -> Path:
        """Return the place at which the runner can read a file.

        Raises:
            OSError: the disk is full, or the file cannot be shared.
        """
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
        self.task_file(attempt).unlink(missing_ok=True)
        unlink(self.folders.inputs)

    def close(self) -> None:
        """End all processes and delete its folders. That of its tasks stays until their files are stored."""
        self.process.close()
        self.watch.stop()
        if self.packages is not None:
            self.packages.release()
        remove_if_empty(self.folders.work)
        if self.checkpoints is not None:
            self.checkpoints.close()


@dataclass(frozen=True)
class SandboxedChild(Child):
    """A started runner in a sandbox."""

    sandbox: Sandbox
