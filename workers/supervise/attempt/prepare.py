"""Finishes an attempt's task. No other module in the supervisor copies a task.

The steps, in this order:

1. `load`: the input files are downloaded, and the checkpoints that other machines have written;
2. `with_interpreters`: the interpreters with the packages for its code;
3. `with_compile_cache`: the folder for compiled programs;
4. `with_failures`, after the packages are installed: models whose packages cannot be;
5. `with_row_memory`, for the memory that its runner has;
6. `with_models`: the sockets where its models are executed, in place of their code;
7. `with_paths_of_user` or `with_paths_of_sandbox`: the paths at which its runner finds its files.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobs.messages.task import EarlierTraining, ModelWithCode, Task, with_checkpoints, with_inputs
from jobs.messages.training import TrainTask, TrialPlan, TrialTask
from workers.confinement.environments.failures import BuildFailed
from workers.confinement.isolation.access import RunnerAccess
from workers.supervise.attempt.database_calls import DatabaseCalls
from workers.supervise.attempt.node_context import NodeContext
from workers.supervise.attempt.packages import Packages
from workers.supervise.attempt_repository import Assignment
from workers.supervise.checkpoints.earlier_names import remove_earlier
from workers.supervise.checkpoints.fetching import Training, fetch_checkpoints
from workers.supervise.pool.runner_sandbox import Sandbox

WORK = "work"
"""The folder of an attempt in which its runner writes. The others are the supervisor's."""


async def load(assignment: Assignment, node: NodeContext, calls: DatabaseCalls, folder: Path) -> Task:
    """Return an attempt's task with all that is known before its packages are installed.

    Args:
        assignment: the attempt.
        node: the node's resources.
        calls: repeats calls to the database.
        folder: the attempt's.

    Raises:
        BuildFailed: the packages for its code cannot be installed.
        SandboxRefused: this machine offers no sandbox that is strong enough for its code.
        StoreUnavailable: a checkpoint cannot be downloaded now.
    """
    threads = node.threads_per_slot * assignment.slots
    task = await calls.repeat(
        lambda: node.repository.task_for(assignment.attempt, folder=folder / WORK, threads=threads)
    )
    await asyncio.to_thread(remove_earlier, task, node.checkpoints)
    if node.copies is not None:
        task = with_reasons(task, await fetch_checkpoints(task, node.copies))
    if node.packages is not None:
        task = await with_interpreters(task, node.packages)
    task = await with_compile_cache(task, assignment, node)
    (folder / WORK).mkdir(mode=0o700, exist_ok=True)
    return task


def with_reasons(task: Task, reasons: Mapping[Training, str]) -> Task:
    """Return a task whose trainings have the reasons why they cannot resume."""
    if isinstance(task, TrainTask):
        return task.model_copy(update={"earlier": _earlier(task.earlier, reasons.get((0, 0)))})
    if not isinstance(task, TrialTask) or not reasons:
        return task
    return task.model_copy(
        update={"trials": tuple(_trial_with_reasons(trial, reasons) for trial in task.trials)}
    )


def _trial_with_reasons(trial: TrialPlan, reasons: Mapping[Training, str]) -> TrialPlan:
    executions = tuple(
        plan.model_copy(
            update={"earlier": _earlier(plan.earlier, reasons.get((trial.number, plan.execution)))}
        )
        for plan in trial.executions
    )
    return trial.model_copy(update={"executions": executions})


def _earlier(earlier: EarlierTraining | None, reason: str | None) -> EarlierTraining | None:
    if earlier is None or reason is None:
        return earlier
    return earlier.model_copy(update={"reason": reason})


async def with_interpreters(task: Task, packages: Packages) -> Task:
    """Return a task with the interpreters that its packages will have, before they are installed.

    Raises:
        BuildFailed: those for its code cannot be installed; the text is the cause.
    """
    changes: dict[str, Any] = {}
    if task.code is not None:
        changes["code"] = await packages.place(task.code, for_engine=task.runs_in_engine())
    if task.models:
        changes["models"] = tuple([await _model_with_interpreter(model, packages) for model in task.models])
    return task.model_copy(update=changes)


async def _model_with_interpreter(model: ModelWithCode, packages: Packages) -> ModelWithCode:
    """Return a model with its interpreter. The task runs without a model whose packages are missing."""
    if model.code is None:
        return model
    try:
        return model.model_copy(update={"code": await packages.place(model.code, for_engine=True)})
    except BuildFailed as error:
        return model.model_copy(update={"failure": error.message})


async def with_compile_cache(task: Task, assignment: Assignment, node: NodeContext) -> Task:
    """Return a task with the folder for its compiled programs, unless it names one.

    Programs that user code has compiled are executed by its own runners alone.
    """
    if task.compile_cache is not None:
        return task
    name = assignment.compile_cache
    if task.code is not None and (sandboxes := node.pool.sandboxes) is not None:
        level = await sandboxes.require(task.code.minimum)
        packages = hashlib.sha256(task.code.python.encode()).hexdigest()[:12]
        name = f"{name}-code-{level}-{packages}"
    return task.model_copy(update={"compile_cache": str(node.compile_caches / name)})


def with_failures(task: Task, failures: Mapping[str, str]) -> Task:
    """Return a task whose models have the causes, by their names, for which they cannot be executed."""
    if not failures:
        return task
    models = tuple(
        model.model_copy(update={"failure": failures.get(model.name, model.failure)}) for model in task.models
    )
    return task.model_copy(update={"models": models})


def with_row_memory(task: Task, size: int) -> Task:
    """Return a task with the size, in bytes, up to which table rows are kept in memory."""
    return task.model_copy(update={"in_memory_bytes": size})


def with_models(task: Task, sockets: Mapping[str, Path]) -> Task:
    """Return a task with its models' sockets, by model name, in place of their code."""
    if not task.models:
        return task
    models = tuple(
        model.model_copy(update={"code": None, "socket": str(sockets.get(model.name, model.socket))})
        for model in task.models
    )
    return task.model_copy(update={"models": models})


def with_paths_of_user(task: Task, access: RunnerAccess) -> Task:
    """Return a task with the input files that a runner with its own user can read.

    Raises:
        OSError: the disk is full, or a file cannot be shared.
    """
    return with_inputs(task, lambda path: str(access.read_only(Path(path))))


def with_paths_of_sandbox(task: Task, sandbox: Sandbox, folder: Path) -> Task:
    """Return a task with the paths at which a runner in a sandbox finds its files.

    Args:
        task: the task.
        sandbox: has the code already.
        folder: where the runner writes.

    Raises:
        OSError: the disk is full, or a file cannot be shared.
    """
    # Without the code: its files have been put into the sandbox, which has one version for all of its tasks.
    task = task.model_copy(update={"code": None})
    task = with_inputs(task, lambda path: str(sandbox.files.read_only(Path(path))))
    changes: dict[str, Any] = {"folder": str(folder), "code": sandbox.code}
    if (checkpoints := sandbox.checkpoints) is not None:
        task = with_checkpoints(task, lambda path: checkpoints.link(path, sandbox.files.inputs))
        changes["checkpoints"] = str(checkpoints.place)
    return task.model_copy(update=changes)
