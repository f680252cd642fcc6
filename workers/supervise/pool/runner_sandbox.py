"""The sandbox for one runner with user code: its needs, its processes, and its tasks' files."""

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
    """The sandbox that a task with code needs. Another task may use its runner only if it needs the same.

    Attributes:
        project: the project whose files it reads.
        code: its code.
        checkpoints: the folder with its job's checkpoints.
        compile_cache: the folder with its compiled programs.
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
    """A runner's sandbox.

    Attributes:
        files: its files, which the runner closes.
        work: has a folder for each task, in which the runner writes. No folder of the runner contains it,
            since a task's results are stored after its runner has ended.
        checkpoints: the folder with its checkpoints; None if its tasks have none.
        code: its job's code, in its folder.
    """

    files: ProcessFiles
    work: Path
    checkpoints: RunnerCheckpoints | None
    code: OwnCode

    def make_work_folder(self, attempt: int) -> Path:
        """Return an empty folder in which the runner writes an attempt's files."""
        folder = self.work / str(attempt)
        shutil.rmtree(folder, ignore_errors=True)
        # It inherits the rights of the folder around it.
        folder.mkdir()
        return folder

    def task_file(self, attempt: int) -> Path:
        """Return the path to the file that has an attempt's task."""
        return self.files.inputs / f"task-{attempt}.json"

    def withdraw(self, attempt: int) -> None:
        """Withdraw a task's files, except inputs, which the job's next task needs again."""
        self.task_file(attempt).unlink(missing_ok=True)
        unlink(self.files.inputs)

    def close(self) -> None:
        """End all processes. The folder for its tasks stays until their files are stored."""
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
