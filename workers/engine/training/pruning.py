"""Pruning within a task: what others had reached, at hand at the end of each epoch."""

from collections.abc import Callable, Iterable, Sequence

from jobs.contracts.pruning import Curve, Verdict, judge
from jobs.kinds.search.payload import ExecutionPlan, TrialPlan, TrialTask
from workers.engine.training.training import Outcome

Judge = Callable[[int, Sequence[tuple[int, float]]], Verdict | None]
"""Called with the epochs done and the best values so far."""


class Others:
    """What trainings are compared with: what the task came with, its own that ended, what it was told since.

    Each training counts once, however often it is told.
    """

    def __init__(self, curves: Iterable[Curve], news: Callable[[], Iterable[Curve]]) -> None:
        self._news = news
        self._curves: dict[tuple[int, int], Curve] = {}
        self.add(curves)

    def add(self, curves: Iterable[Curve]) -> None:
        """Take in trainings that have ended."""
        self._curves |= {(curve.trial, curve.execution): curve for curve in curves}

    def now(self) -> Sequence[Curve]:
        """Return everything that is known by now."""
        self.add(self._news())
        return tuple(self._curves.values())


def judge_of(task: TrialTask, trial: TrialPlan, plan: ExecutionPlan, others: Others) -> Judge | None:
    """Return what judges a training; None without a pruner, or of a trial that was completed before."""
    search = task.spec.search
    if search is None or search.pruner is None or trial.until is not None:
        return None
    pruner, whole, maximize = search.pruner, trial.spec.fit.epochs, task.objective.direction == "max"

    def decide(epoch: int, best: Sequence[tuple[int, float]]) -> Verdict | None:
        mine = Curve(trial=trial.number, execution=plan.execution, epochs=epoch, over=False, best=tuple(best))
        return judge(pruner, others.now(), mine, whole=whole, maximize=maximize)

    return decide


def curve_of(trial: TrialPlan, plan: ExecutionPlan, outcome: Outcome) -> Curve:
    """Return what later trials are compared with."""
    return Curve(
        trial=trial.number,
        execution=plan.execution,
        epochs=outcome.epochs,
        over=outcome.verdict is None,
        best=outcome.best,
    )
