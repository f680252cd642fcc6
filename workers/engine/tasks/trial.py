"""Runs the trial task: trains a search's trials in order, each with its unfinished executions.

A trial that pauses at the end of a rung has written a checkpoint for each execution. If it is promoted, the
next task resumes from them as if it had not stopped.
"""

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jobs.messages.events import TrialEnd
from jobs.messages.task import required
from jobs.messages.training import TrialPlan, TrialTask
from jobs.spec.sections.evaluation import Turn
from workers.engine.data.dataset import Dataset
from workers.engine.models import base_models
from workers.engine.models.devices.loading import leaving_mesh
from workers.engine.models.own_code.in_use import using_code
from workers.engine.phases import announced_to
from workers.engine.report import Report, TaskInterrupted
from workers.engine.tasks.failed_trials import result_or_failure
from workers.engine.training import lockstep, pruning
from workers.engine.training.execution import Execution, TrialContext
from workers.engine.training.model_cache import ModelCache
from workers.engine.training.progress import TrialProgress

MODEL_CACHE = ModelCache()
"""Models built by this process. A runner works for one search."""


class _Shared(NamedTuple):
    """What all trials of a task share; see `TrialContext`."""

    task: TrialTask
    dataset: Dataset
    rivals: pruning.RivalCurves
    measured: set[Turn]


def run(task: TrialTask, report: Report) -> dict[str, Any]:
    """Train trials in order. A trial that fails does not affect the others.

    Returns:
        `trials`: each trial's result unless it has failed (see `_train`). Each trial's end has been
        reported by then.

    Raises:
        TaskInterrupted: a pause or stop was requested. Trials that have not started are unchanged.
        CodeFatalFailure: the code ended the search.
        Exception: an error that affects the whole process, for example out of memory.
    """
    base_models.provide(task.base_model)
    with announced_to(report.phase):
        dataset = MODEL_CACHE.load(required(task.dataset), task.spec, task.in_memory_bytes)
    shared = _Shared(task, dataset, pruning.RivalCurves(task.curves, report.curves), set())
    with using_code(task.code, Path(task.folder)), leaving_mesh():
        results = [_run_trial(shared, trial, report.for_trial(trial.number)) for trial in task.trials]
    return {"trials": [result for result in results if result is not None]}


def _run_trial(shared: _Shared, trial: TrialPlan, report: Report) -> dict[str, Any] | None:
    """Train one trial and report its start and end; return None if it failed."""
    # Between trials nothing is in progress: the remaining trials wait again, without a restart being counted.
    if (request := report.request()) in ("pause", "stop"):
        raise TaskInterrupted(request)
    report.trial_started()
    result = result_or_failure(report, lambda: _train(shared, trial, report))
    if result is None:
        return None
    verdict = result["verdict"]
    state: TrialEnd = "completed"
    if verdict is not None:
        state = "pruned"
    elif any(execution["state"] == "paused" for execution in result["executions"]):
        state = "paused"
    report.trial_finished(state=state, verdict=verdict)
    return result | {"verdict": None if verdict is None else verdict.model_dump()}


def _train(shared: _Shared, trial: TrialPlan, report: Report) -> dict[str, Any]:
    """Train a trial's unfinished executions. Each one's score is the objective at its best epoch.

    If one is pruned, the trial is pruned and the remaining executions are not trained. The curves from ended
    executions are added to `rivals`, for comparison with later trials in the task.

    Returns:
        `trial` (its number), `score` (mean over these executions), `std`, and `executions` with state,
        score, best_epoch, epochs, metrics and seconds for each. No model is exported: the
        best execution's checkpoint is enough.
    """
    progress = TrialProgress(report, [plan.execution for plan in trial.executions], trial.epochs)
    task, dataset, rivals, measured = shared
    context = TrialContext(task, trial, dataset, MODEL_CACHE, report, progress, rivals, measured)
    done: list[Execution] = []
    verdict = None
    for ended in lockstep.train([Execution(plan, context) for plan in trial.executions]):
        done += ended
        verdicts = (execution.result.verdict for execution in ended)
        if (verdict := next(filter(None, verdicts), None)) is not None:
            break
    rivals.add([pruning.curve_of(trial, execution.plan, execution.result) for execution in done])
    summaries = [execution.summary() for execution in done]
    # Only a pruned execution may have a score that is not finite.
    scores = [entry["score"] for entry in summaries if math.isfinite(entry["score"])]
    return {
        "trial": trial.number,
        "score": float(np.mean(scores)) if scores else None,
        "std": float(np.std(scores)) if scores else None,
        "executions": summaries,
        "verdict": verdict,
    }
