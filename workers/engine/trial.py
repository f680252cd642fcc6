"""The trial task: trials of a search, one after another, and of each its open executions with their seeds.

A trial that waits at the end of a rung leaves the checkpoint of each execution there; the next task goes on
from them as if it had never stopped.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jobs.spec.events import ExecutionState, TrialEnd
from jobs.spec.pruning import Curve
from jobs.spec.task import ExecutionPlan, TrialPlan, TrialTask
from workers.engine import checkpoint, pruning
from workers.engine.checkpoint import Snapshot
from workers.engine.data.dataset import Dataset
from workers.engine.data.folds import rows_of
from workers.engine.data.table import Array
from workers.engine.errors import EngineError, NanObjective, ends_the_task
from workers.engine.keeper import Keeper
from workers.engine.losses import direction
from workers.engine.report import Report, Yielding
from workers.engine.setup import Prepared, check_figure
from workers.engine.stock import Stock
from workers.engine.stopping import Watch
from workers.engine.trainer import Outcome, Plan, Training

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
    pace = _Pace(report, len(trial.executions), trial.epochs)
    done: list[dict[str, Any]] = []
    curves: list[Curve] = []
    verdict = None
    for plan in trial.executions:
        prune = pruning.judge_of(task, trial, plan, others)
        outcome, state = _execute(task, trial, plan, dataset, report, pace, prune)
        pace.execution_done(outcome.epochs)
        curves.append(pruning.curve_of(trial, plan, outcome))
        done.append(
            {
                "execution": plan.execution,
                "state": state,
                "score": outcome.figures[task.objective.metric],
                "best_epoch": outcome.best_epoch,
                "epochs": outcome.epochs,
                "metrics": outcome.figures,
                "seconds": round(outcome.seconds, 3),
            }
        )
        if (verdict := outcome.verdict) is not None:
            break
    others.add(curves)
    scores = [entry["score"] for entry in done if math.isfinite(entry["score"])]
    return {
        "trial": trial.number,
        "score": float(np.mean(scores)) if scores else None,
        "std": float(np.std(scores)) if scores else None,
        "executions": done,
        "verdict": verdict,
    }


class _Pace:
    """Progress in epochs over all executions; those that stop early shorten what is left."""

    def __init__(self, report: Report, executions: int, epochs: int) -> None:
        self._report = report
        self._before = 0
        self._left = executions
        self._epochs = epochs

    def __call__(self, epochs: float) -> None:
        total = self._before + self._left * self._epochs
        self._report.progress(self._before + epochs, total, "epochs")

    def execution_done(self, epochs: int) -> None:
        self._before += epochs
        self._left -= 1
        self(0)


def _execute(
    task: TrialTask,
    trial: TrialPlan,
    plan: ExecutionPlan,
    dataset: Dataset,
    report: Report,
    pace: _Pace,
    prune: pruning.Judge | None,
) -> tuple[Outcome, ExecutionState]:
    report.execution(plan.execution, "running")
    report.log(f"execution {plan.execution}{_fold(plan)} begins: {trial.values}")
    rows = rows_of(plan.turn(), dataset, trial.spec)
    name = f"trial_{trial.number}_{plan.execution}"
    prepared = STOCK.prepare(trial.spec, dataset, rows.train, name=name, seed=plan.seed)
    folder = Path(task.checkpoints or task.folder) / f"trial-{trial.number}"
    parent = folder / f"execution-{plan.execution}"
    keeper = Keeper(parent, report, fence=task.fence, execution=plan.execution)
    asked = _plan(task, trial, plan, prepared, rows.validation, keeper, report, pace)
    training = Training(replace(asked, prune=prune))
    snapshot = _newest(plan, report)
    try:
        outcome = training.run(snapshot)
        score = _score(task, outcome)
    except EngineError:
        report.execution(plan.execution, "failed")
        raise
    state = _state(trial, outcome)
    report.log(
        f"execution {plan.execution}: {task.objective.metric} {score:.4g} at epoch {outcome.best_epoch} "
        f"of {outcome.epochs}"
    )
    report.execution(
        plan.execution,
        state,
        score=score,
        best_epoch=outcome.best_epoch,
        epochs=outcome.epochs,
        metrics=outcome.figures,
        best=outcome.best if task.spec.search is not None and task.spec.search.pruner is not None else (),
    )
    return outcome, state


def _state(trial: TrialPlan, outcome: Outcome) -> ExecutionState:
    if outcome.verdict is not None:
        return "pruned"
    return "paused" if trial.waits and not outcome.exhausted else "completed"


def _newest(plan: ExecutionPlan, report: Report) -> Snapshot | None:
    """Return what to go on from; None: begin at the first epoch."""
    found = checkpoint.newest_whole(plan.checkpoints)
    if found is None:
        return None
    snapshot = checkpoint.read(Path(found.folder))
    report.log(f"execution {plan.execution} goes on after epoch {snapshot.state['epoch']}")
    return snapshot


def _score(task: TrialTask, outcome: Outcome) -> float:
    """Return the objective at the best epoch; of a training that a pruner stopped it need not be finite.

    Raises:
        NanObjective: it was not finite at any epoch, so the trial cannot be ranked.
    """
    metric = task.objective.metric
    score = outcome.figures[metric]
    if outcome.verdict is None and not math.isfinite(score):
        raise NanObjective(
            f"{metric} was {score} at each of {outcome.epochs} epochs; try a smaller learning rate, or "
            "another objective"
        )
    return score


def _fold(plan: ExecutionPlan) -> str:
    return "" if plan.fold is None else f" (fold {plan.fold})"


def _plan(
    task: TrialTask,
    trial: TrialPlan,
    plan: ExecutionPlan,
    prepared: Prepared,
    held: Array,
    keeper: Keeper,
    report: Report,
    pace: _Pace,
) -> Plan:
    objective, early = task.objective, trial.spec.fit.early_stopping
    stop = None
    if early is not None:
        monitor = check_figure(early.monitor, prepared, "early_stopping.monitor")
        stop = Watch(monitor, direction(monitor), early.patience, early.min_delta)
    metric = check_figure(objective.metric, prepared, "the objective")
    measured = prepared.held(held)
    return Plan(
        model=prepared.model,
        batches=prepared.batches,
        loop=prepared.loop(measured, epochs=trial.epochs),
        widths=prepared.widths,
        validation=measured,
        epochs=trial.epochs,
        best=Watch(metric, objective.direction),
        stop=stop,
        keeper=keeper,
        report=report,
        pace=pace,
        execution=plan.execution,
        hook=prepared.hook(),
    )
