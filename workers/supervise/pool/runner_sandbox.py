"""The sandbox of one runner with code of users: its needs, its processes, and the files of its tasks."""

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from jobs.messages.sandbox import Limits
from jobs.messages.task import OwnCode
from workers.confinement.forking.client import Child
from workers.confinement.sandbox.gpus import GpuAccess
from workers.confinement.start.files import ProcessFiles
from workers.confinement.start.process import CodeProcess
from workers.supervise.pool.runner_checkpoints import RunnerCheckpoints, unlink

WORK = "own-code"
"""The folder beside those of the attempts that has a folder for each runner, and in it one for each task."""


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
class Sandbox(CodeProcess):
    """The sandbox of a runner.

    Attributes:
        files: its files, which the runner closes.
        work: has a folder for each of its tasks, in which it writes. It is in no folder of the runner, since
            the results of a task are stored after its runner has ended.
        checkpoints: the folder of its checkpoints; None if its tasks have none.
        code: the code of its job, in its folder.
    """

    files: ProcessFiles
    work: Path
    checkpoints: RunnerCheckpoints | None
    code: OwnCode

    def make_work_folder(self, attempt: int) -> Path:
        """Return an empty folder in which the runner writes the files of an attempt."""
        folder = self.work / str(attempt)
        shutil.rmtree(folder, ignore_errors=True)
        # It inherits the rights of the folder around it.
        folder.mkdir()
        return folder

    def task_file(self, attempt: int) -> Path:
        """Return the place of the file with the task of an attempt."""
        return self.files.inputs / f"task-{attempt}.json"

    def withdraw(self, attempt: int) -> None:
        """Withdraw the files of a task, except inputs, which the next task of the job needs again."""
        self.task_file(attempt).unlink(missing_ok=True)
        unlink(self.files.inputs)

    def close(self) -> None:
        """End all processes. The folder of its tasks stays until their files are stored."""
        super().close()
        remove_if_empty(self.work)
        if self.checkpoints is not None:
            self.checkpoints.close()


@dataclass(frozen=True)
class SandboxedChild(Child):
    """A started runner in a sandbox."""

    sandbox: Sandbox


def remove_if_empty(folder: Path) -> None:
    """Remove a folder, unless something is in it."""
    with contextlib.suppress(OSError):
        folder.rmdir()
