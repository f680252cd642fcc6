"""Decides which trainings to prune by comparing them with other trainings at the same epoch.

A decision depends only on the curves, so a runner decides without the database, and equal curves give equal
decisions.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from operator import itemgetter
from statistics import median
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from jobs.spec.base import Frozen
from jobs.spec.sections.rungs import RungOptions, brackets, rung_epochs

Epochs = Annotated[int, Field(ge=1, le=100_000)]
Factor = Annotated[int, Field(ge=2, le=10)]


class MedianPruner(Frozen):
    """Prunes trainings worse than the median, every `interval` epochs after `warmup_epochs`."""

    kind: Literal["median"] = "median"
    startup_trials: int = Field(default=5, ge=1, le=1000)
    warmup_epochs: int = Field(default=0, ge=0, le=100_000)
    interval: Epochs = 1


class AshaPruner(Frozen):
    """Prunes trainings at a rung that are not among the best 1 / `factor`."""

    kind: Literal["asha"] = "asha"
    factor: Factor = 3
    min_epochs: Epochs = 1


class HyperbandPruner(Frozen):
    """ASHA with brackets that begin at different rungs; trials are compared within their bracket."""

    kind: Literal["hyperband"] = "hyperband"
    factor: Factor = 3
    min_epochs: Epochs = 1
    max_epochs: Epochs | None = None

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.max_epochs is not None and self.min_epochs > self.max_epochs:
            raise ValueError(f"min_epochs {self.min_epochs} is above max_epochs {self.max_epochs}")
        return self


PRUNERS: dict[str, type[MedianPruner | AshaPruner | HyperbandPruner]] = {
    "median": MedianPruner,
    "asha": AshaPruner,
    "hyperband": HyperbandPruner,
}
Pruner = Annotated[MedianPruner | AshaPruner | HyperbandPruner, Field(discriminator="kind")]


# `bisect_right` calls it often, and an itemgetter is faster than a lambda.
_EPOCH = itemgetter(0)


class Curve(Frozen):
    """A training's intermediate results.

    Attributes:
        trial: the trial's number.
        execution: the training's number within the trial, from 1. Only trainings with the same number are
            compared, because they have the same validation rows.
        epochs: the epochs trained so far.
        over: whether it trained to its end. Its best value then counts for all later epochs.
        best: each epoch at which the best value changed, and that value; ascending.
    """

    trial: int
    execution: int
    epochs: int
    over: bool
    best: tuple[tuple[int, float], ...] = ()

    def at(self, epoch: int) -> float | None:
        """Return the best value up to an epoch, or None if it did not reach the epoch or has no value."""
        if epoch > self.epochs and not self.over:
            return None
        # Bisection, because this is called for every other training at each epoch.
        place = bisect_right(self.best, epoch, key=_EPOCH)
        return self.best[place - 1][1] if place else None


class Verdict(Frozen):
    """Why a training was pruned: its `value` at `epoch` is worse than `threshold`, set by `of` others."""

    rule: str
    execution: int
    rung: int = 0
    epoch: int
    value: float | None
    threshold: float
    of: int


def judge(
    pruner: Pruner, curves: Sequence[Curve], mine: Curve, *, epochs: int, maximize: bool
) -> Verdict | None:
    """Decide whether to prune a training after its last epoch.

    Args:
        pruner: the rule.
        curves: other trainings' curves, in any order. Other executions and the same trial are ignored.
        mine: the training's curve.
        epochs: how many epochs a full training has.
        maximize: whether larger values are better.

    Returns:
        The reason to prune it; None to continue.

    Source: Golovin et al., Google Vizier, KDD 2017, section 3.2 (median rule; here both sides are best
    values, because a score is a best value); Li et al., MLSys 2020 (ASHA's stopping variant).
    """
    sign = -1.0 if maximize else 1.0
    others = [c for c in curves if c.execution == mine.execution and c.trial != mine.trial]
    value = mine.at(mine.epochs)
    if isinstance(pruner, MedianPruner):
        rung = 0
        late = mine.epochs - pruner.warmup_epochs
        costs = _costs(others, mine.epochs, sign)
        if late < 1 or late % pruner.interval or len(costs) < pruner.startup_trials:
            return None
        cutoff = median(costs)
    else:
        rungs, others = _rungs_and_rivals(pruner, others, mine.trial, epochs)
        if mine.epochs not in rungs:
            return None
        rung = rungs.index(mine.epochs)
        costs = _costs(others, mine.epochs, sign)
        among = sorted([*costs, *([] if value is None else [sign * value])])
        # One more than `costs`, because the training itself has reached the rung.
        number_kept = (len(costs) + 1) // pruner.factor
        # With fewer trainings than `factor`, the best share is empty: nothing is pruned.
        if not number_kept or not among:
            return None
        cutoff = among[min(number_kept, len(among)) - 1]
    if value is not None and sign * value <= cutoff:
        return None
    return Verdict(
        rule=pruner.kind, execution=mine.execution, rung=rung, epoch=mine.epochs, value=value,
        threshold=sign * cutoff, of=len(costs),
    )  # fmt: skip


def _costs(curves: Sequence[Curve], epoch: int, sign: float) -> list[float]:
    return [sign * value for curve in curves if (value := curve.at(epoch)) is not None]


def _rungs_and_rivals(
    pruner: AshaPruner | HyperbandPruner, others: list[Curve], trial: int, epochs: int
) -> tuple[list[int], list[Curve]]:
    """Return the epochs at which a trial is compared, and its bracket's curves."""
    if isinstance(pruner, AshaPruner):
        return list(rung_epochs(pruner.min_epochs, epochs, pruner.factor)[:-1]), others
    options = RungOptions(
        factor=pruner.factor,
        min_epochs=pruner.min_epochs,
        max_epochs=min(pruner.max_epochs or epochs, epochs),
    )
    # Enough trials for all brackets, so that none is made smaller.
    every = brackets(options, epochs, 1_000_000)
    # Trials fill the brackets in turn, as in Hyperband.
    ends = list(accumulate(bracket.sizes[0] for bracket in every))

    def bracket_of(number: int) -> int:
        # Trials are numbered from 1. After the last bracket, the first begins again.
        place = (number - 1) % ends[-1]
        return next(i for i, end in enumerate(ends) if place < end)

    mine = bracket_of(trial)
    return list(every[mine].epochs[:-1]), [c for c in others if bracket_of(c.trial) == mine]
