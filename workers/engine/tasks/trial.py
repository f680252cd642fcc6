"""The trial task: trials of a search, one after another, and of each its open executions with their seeds.

A trial that waits at the end of a rung leaves the checkpoint of each execution there; the next task goes on
from them as if it had never stopped.
"""

import math
from typing import Any

import numpy as np

from jobs.contracts.events import TrialEnd
from jobs.kinds.search.payload import TrialPlan, TrialTask
from workers.engine.data.dataset import Dataset
from workers.engine.errors import ends_the_task
from workers.engine.report import Report, Yielding
from workers.engine.training import lockstep, pruning
from workers.engine.training.execution import Execution, Surroundings
from workers.engine.training.model_cache import Stock
from workers.engine.training.progress import Progress

STOCK = Stock()
"""What this process has built; a runner serves one search."""


def run(task: TrialTask, report: Report) -> dict[str, Any]:
    """Train trials in order; one that fails ends alone, and the next one begins.

    Returns:
        `trials`: what `_train` returns of each that was completed. The database does not need it: the end of
        each has been said by then.

    Raises:
        Yielding: a pause or stop was asked for. Trials that had not begun are left as they are.
        Exception: an error that concerns the whole process, such as no memory left.
    """
    dataset = STOCK.load(task.dataset, task.spec.data)
    others = pruning.Others(task.curves, report.curves)
    told = [_tell(task, trial, dataset, report.of_trial(trial.number), others) for trial in task.trials]
    return {"trials": [one for one in told if one is not None]}


def _tell(
    task: TrialTask, trial: TrialPlan, dataset: Dataset, report: Report, others: pruning.Others
) -> dict[str, Any] | None:
    """Train one trial between its beginning and its end, whichever that is."""
    if (request := report.request()) in ("pause", "stop"):
        raise Yielding(request)
    report.trial_begins()
    try:
        done = _train(task, trial, dataset, report, others)
    except Exception as error:
        if ends_the_task(error):
            raise
        report.trial_ends(error)
        return None
    verdict = done["verdict"]
    waits = any(execution["state"] == "paused" for execution in done["executions"])
    state: TrialEnd = "pruned" if verdict is not None else "paused" if waits else "completed"
    report.trial_ends(state=state, verdict=verdict)
    return done | {"verdict": None if verdict is None else verdict.model_dump()}


def _train(
    task: TrialTask, trial: TrialPlan, dataset: Dataset, report: Report, others: pruning.Others
) -> dict[str, Any]:
    """Train each open execution of a trial; the score of one is the objective at its best epoch.

    Once one is pruned the trial is, and the executions after it are not trained. What is over is added to
    `others`, with which later trials of the task are compared.

    Returns:
        `trial` (its number), `score` (mean over these executions), `std`, and `executions` with state,
        score, best_epoch, epochs, metrics and seconds of each. No model is exported: the checkpoint of the
        best one is enough.
    """
    progress = Progress(report, [plan.execution for plan in trial.executions], trial.epochs)
    around = Surroundings(task, trial, dataset, STOCK, report, progress, others)
    done: list[Execution] = []
    verdict = None
    for ended in lockstep.train([Execution(plan, around) for plan in trial.executions]):
        done += ended
        verdicts = (execution.outcome.verdict for execution in ended)
        if (verdict := next(filter(None, verdicts), None)) is not None:
            break
    others.add([pruning.curve_of(trial, each.plan, each.outcome) for each in done])
    told = [execution.said() for execution in done]
    scores = [entry["score"] for entry in told if math.isfinite(entry["score"])]
    return {
        "trial": trial.number,
        "score": float(np.mean(scores)) if scores else None,
        "std": float(np.std(scores)) if scores else None,
        "executions": told,
        "verdict": verdict,
    }
