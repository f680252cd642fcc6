"""Prunes trainings: compares each epoch with other executions' learning curves in the search."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from jobs.messages.training import ExecutionPlan, TrialPlan, TrialTask
from jobs.spec.sections.pruning import Curve, Verdict, judge

if TYPE_CHECKING:
    # They need Keras, which trials of scripts do without.
    from workers.engine.training.plan import PruningCheck, TrainingResult


class RivalCurves:
    """Learning curves that trainings are compared with.

    They come with the task, from other runners while it runs, and from the task's own executions that have
    ended. A curve that arrives again replaces the earlier one.

    Args:
        curves: those that came with the task.
        receive: returns those that arrived since its last call.
    """

    def __init__(self, curves: Iterable[Curve], receive: Callable[[], Iterable[Curve]]) -> None:
        self._receive = receive
        self._curves: dict[tuple[int, int], Curve] = {}
        self.add(curves)

    def add(self, curves: Iterable[Curve]) -> None:
        """Add the curves from executions that have ended."""
        self._curves |= {(curve.trial, curve.execution): curve for curve in curves}

    def current(self) -> Sequence[Curve]:
        """Return all curves known now."""
        self.add(self._receive())
        return tuple(self._curves.values())


def pruning_check(
    task: TrialTask, trial: TrialPlan, plan: ExecutionPlan, rivals: RivalCurves
) -> "PruningCheck | None":
    """Return the pruning check for an execution, or None if it must not be pruned.

    Args:
        task: has the pruner and the objective.
        trial: the execution's trial.
        plan: the execution.
        rivals: the curves that it is compared with.
    """
    search = task.spec.search
    # A search with a pruner has no rungs, so a trial with `until` was completed before and is continued.
    if search is None or search.pruner is None or trial.until is not None:
        return None
    pruner, max_epochs, maximize = search.pruner, trial.spec.fit.epochs, task.objective.direction == "max"

    def check(epoch: int, best: Sequence[tuple[int, float]]) -> Verdict | None:
        new = Curve(trial=trial.number, execution=plan.execution, epochs=epoch, over=False, best=tuple(best))
        return judge(pruner, rivals.current(), new, epochs=max_epochs, maximize=maximize)

    return check


def curve_of(trial: TrialPlan, plan: ExecutionPlan, result: "TrainingResult") -> Curve:
    """Return the learning curve for an execution that has ended, for comparison with later ones."""
    return Curve(
        trial=trial.number,
        execution=plan.execution,
        epochs=result.epochs,
        over=result.verdict is None,
        best=result.best,
    )
