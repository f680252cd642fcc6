"""The trial task: the open executions of one configuration, one after another, each with its seed."""

from pathlib import Path
from typing import Any

import numpy as np

from jobs.spec.task import ExecutionPlan, TrialTask
from workers.engine import checkpoint
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.errors import EngineError
from workers.engine.keeper import Keeper
from workers.engine.losses import direction
from workers.engine.report import Report
from workers.engine.setup import Prepared, check_figure
from workers.engine.stock import Stock
from workers.engine.stopping import Watch
from workers.engine.trainer import Outcome, Plan, Training

STOCK = Stock()
"""What this process has built; a runner serves one search."""


def run(task: TrialTask, report: Report) -> dict[str, Any]:
    """Train each open execution; the score of one is the objective at its best epoch.

    Returns:
        `score` (mean over these executions), `std`, and `executions` with score, best_epoch, epochs,
        metrics and seconds of each. No model is exported: the checkpoint of the best one is enough.
    """
    dataset = load_dataset(task.dataset, task.spec.data)
    pace = _Pace(report, len(task.executions), task.spec.fit.epochs)
    done: list[dict[str, Any]] = []
    for plan in task.executions:
        outcome, score = _execute(task, plan, dataset, report, pace)
        pace.execution_done(outcome.epochs)
        done.append(
            {
                "execution": plan.execution,
                "score": score,
                "best_epoch": outcome.best_epoch,
                "epochs": outcome.epochs,
                "metrics": outcome.figures,
                "seconds": round(outcome.seconds, 3),
            }
        )
    scores = [entry["score"] for entry in done]
    return {
        "score": float(np.mean(scores)) if scores else None,
        "std": float(np.std(scores)) if scores else None,
        "executions": done,
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
    task: TrialTask, plan: ExecutionPlan, dataset: Dataset, report: Report, pace: _Pace
) -> tuple[Outcome, float]:
    report.execution(plan.execution, "running")
    report.log(f"execution {plan.execution} begins: {task.values}")
    prepared = STOCK.prepare(
        task.spec, dataset, dataset.parts.train, name=f"trial_{task.trial}_{plan.execution}", seed=plan.seed
    )
    parent = Path(task.checkpoints or task.folder) / f"execution-{plan.execution}"
    keeper = Keeper(parent, report, fence=task.fence, execution=plan.execution)
    training = Training(_plan(task, plan, prepared, keeper, report, pace))
    found = checkpoint.newest_whole(plan.checkpoints)
    try:
        outcome = training.run(None if found is None else checkpoint.read(Path(found.folder)))
    except EngineError:
        report.execution(plan.execution, "failed")
        raise
    score = outcome.figures[task.objective.metric]
    report.log(
        f"execution {plan.execution}: {task.objective.metric} {score:.4g} at epoch {outcome.best_epoch} "
        f"of {outcome.epochs}"
    )
    report.execution(
        plan.execution,
        "completed",
        score=score,
        best_epoch=outcome.best_epoch,
        epochs=outcome.epochs,
        metrics=outcome.figures,
    )
    return outcome, score


def _plan(
    task: TrialTask, plan: ExecutionPlan, prepared: Prepared, keeper: Keeper, report: Report, pace: _Pace
) -> Plan:
    objective, early = task.objective, task.spec.fit.early_stopping
    stop = None
    if early is not None:
        monitor = check_figure(early.monitor, prepared, "early_stopping.monitor")
        stop = Watch(monitor, direction(monitor), early.patience, early.min_delta)
    metric = check_figure(objective.metric, prepared, "the objective")
    return Plan(
        model=prepared.model,
        batches=prepared.batches,
        loop=prepared.loop(),
        widths=prepared.widths,
        validation=prepared.held(prepared.dataset.parts.validation),
        epochs=task.spec.fit.epochs,
        best=Watch(metric, objective.direction),
        stop=stop,
        keeper=keeper,
        report=report,
        pace=pace,
        execution=plan.execution,
    )
