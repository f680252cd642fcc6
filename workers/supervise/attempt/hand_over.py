"""Gives a runner its task file and access to the files that the task needs, and withdraws the access."""

from pathlib import Path

from jobs.messages.control import Start
from jobs.messages.task import Task
from workers.confinement.isolation.access import RunnerAccess
from workers.supervise.attempt.prepare import with_paths_of_sandbox, with_paths_of_user
from workers.supervise.pool.runner_sandbox import Sandbox

_TASK = "spec.json"


def hand_over(task: Task, folder: Path, access: RunnerAccess | None) -> Start:
    """Write the task's file into the attempt's folder, and let the runner use the files that it names.

    Args:
        task: the task.
        folder: the attempt's; it has a folder `WORK`.
        access: the runner's, if it has its own user.

    Raises:
        OSError: the disk is full, or a file cannot be shared.
    """
    file = folder / _TASK
    if access is None:
        file.write_text(task.model_dump_json())
        return Start(task=str(file))
    file.write_text(with_paths_of_user(task, access).model_dump_json())
    # No other runner can enter the folder.
    file.chmod(0o644)
    access.grant(folder, write=False)
    access.grant(Path(task.folder))
    for path in (task.checkpoints, task.compile_cache):
        if path:
            access.grant(Path(path))
    return Start(task=str(file))


def withdraw(task: Task, folder: Path, access: RunnerAccess) -> None:
    """Withdraw the access to a task's folders, except the compile cache of its project."""
    for path in (task.folder, task.checkpoints):
        if path:
            access.revoke(Path(path))
    access.revoke(folder)


def hand_over_in_sandbox(task: Task, attempt: int, sandbox: Sandbox) -> Start:
    """Give a task's files to a runner in a sandbox.

    Raises:
        OSError: the disk is full, or a file cannot be shared.
    """
    folder = sandbox.make_work_folder(attempt)
    file = sandbox.task_file(attempt)
    file.write_text(with_paths_of_sandbox(task, sandbox, folder).model_dump_json())
    file.chmod(0o644)
    return Start(task=str(file))
