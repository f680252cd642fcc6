"""Which trainings are cut short because others were better at the same epoch.

The rules are pure functions of what others had reached, so the runner decides at once, with the database away
too, and the same curves give the same decision.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from operator import itemgetter
from statistics import median
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from jobs.contracts.base import Frozen
from jobs.contracts.rungs import RungOptions, brackets, ladder

Epochs = Annotated[int, Field(ge=1, le=100_000)]
Factor = Annotated[int, Field(ge=2, le=10)]


class MedianPruner(Frozen):
    """Stops what is worse than half of the others; looks every `interval` epochs after `warmup_epochs`."""

    kind: Literal["median"] = "median"
    startup_trials: int = Field(default=5, ge=1, le=1000)
    warmup_epochs: int = Field(default=0, ge=0, le=100_000)
    interval: Epochs = 1


class AshaPruner(Frozen):
    """Stops at a rung what is not among the best of `factor`."""

    kind: Literal["asha"] = "asha"
    factor: Factor = 3
    min_epochs: Epochs = 1


class HyperbandPruner(Frozen):
    """ASHA in brackets that begin at different rungs; a trial is compared within its own."""

    kind: Literal["hyperband"] = "hyperband"
    factor: Factor = 3
    min_epochs: Epochs = 1
    max_epochs: Epochs | None = None

    @model_validator(mode="after")
    def _last_is_not_before_first(self) -> Self:
        if self.max_epochs is not None and self.min_epochs > self.max_epochs:
            raise ValueError(f"min_epochs {self.min_epochs} is above max {self.max_epochs}")
        return self


PRUNERS: dict[str, type[MedianPruner | AshaPruner | HyperbandPruner]] = {
    "median": MedianPruner,
    "asha": AshaPruner,
    "hyperband": HyperbandPruner,
}
Pruner = Annotated[MedianPruner | AshaPruner | HyperbandPruner, Field(discriminator="kind")]


_EPOCH = itemgetter(0)


class Curve(Frozen):
    """How far a training came.

    Attributes:
        trial: its number.
        execution: which training of the trial, from 1; only equal ones are compared, which hold out alike.
        epochs: that it ran.
        over: it had ended by itself, so its best stays what it is for all later epochs.
        best: where its best objective changed: (epoch, value), ascending.
    """

    trial: int
    execution: int
    epochs: int
    over: bool
    best: tuple[tuple[int, float], ...] = ()

    def at(self, epoch: int) -> float | None:
        """Return its best value up to an epoch; None where it did not come so far, or had none."""
        if epoch > self.epochs and not self.over:
            return None
        place = bisect_right(self.best, epoch, key=_EPOCH)  # asked of every other training at each epoch
        return self.best[place - 1][1] if place else None


class Verdict(Frozen):
    """Why a training was stopped: its `value` at `epoch` is worse than `threshold`, of so many others."""

    rule: str
    execution: int
    rung: int = 0
    epoch: int
    value: float | None
    threshold: float
    of: int


def judge(
    pruner: Pruner, curves: Sequence[Curve], mine: Curve, *, whole: int, maximize: bool
) -> Verdict | None:
    """Say why a training shall stop after the epochs that it ran, None if it shall not.

    Args:
        pruner: the rule.
        curves: of the others, in any order; those of other executions and of its own trial do not count.
        mine: its own.
        whole: epochs of a whole training.
        maximize: whether larger is better.

    Source: Golovin et al., Google Vizier, KDD 2017, section 3.2 (the median, here of best values on both
    sides, as scores are); Li et al., MLSys 2020, the stopping variant of ASHA.
    """
    sign = -1.0 if maximize else 1.0
    others = [c for c in curves if c.execution == mine.execution and c.trial != mine.trial]
    value = mine.at(mine.epochs)
    if isinstance(pruner, MedianPruner):
        rung = 0
        late = mine.epochs - pruner.warmup_epochs
        found = _costs(others, mine.epochs, sign)
        if late < 1 or late % pruner.interval or len(found) < pruner.startup_trials:
            return None
        cutoff = median(found)
    else:
        rungs, others = _rungs(pruner, others, mine.trial, whole)
        if mine.epochs not in rungs:
            return None
        rung = rungs.index(mine.epochs)
        found = _costs(others, mine.epochs, sign)
        among = sorted([*found, *([] if value is None else [sign * value])])
        kept = (len(found) + 1) // pruner.factor
        if not kept or not among:
            return None
        cutoff = among[min(kept, len(among)) - 1]
    if value is not None and sign * value <= cutoff:
        return None
    return Verdict(
        rule=pruner.kind, execution=mine.execution, rung=rung, epoch=mine.epochs, value=value,
        threshold=sign * cutoff, of=len(found),
    )  # fmt: skip


def _costs(curves: Sequence[Curve], epoch: int, sign: float) -> list[float]:
    return [sign * value for curve in curves if (value := curve.at(epoch)) is not None]


def _rungs(
    pruner: AshaPruner | HyperbandPruner, others: list[Curve], trial: int, whole: int
) -> tuple[list[int], list[Curve]]:
    """Return the epochs at which a trial is judged, and the curves of its bracket."""
    if isinstance(pruner, AshaPruner):
        return list(ladder(pruner.min_epochs, whole, pruner.factor)[:-1]), others
    options = RungOptions(
        factor=pruner.factor, min_epochs=pruner.min_epochs, max_epochs=min(pruner.max_epochs or whole, whole)
    )
    every = brackets(options, whole, 1_000_000)
    ends = list(accumulate(bracket.sizes[0] for bracket in every))  # trials fill brackets in turn, as large

    def bracket_of(number: int) -> int:
        place = (number - 1) % ends[-1]
        return next(i for i, end in enumerate(ends) if place < end)

    mine = bracket_of(trial)
    return list(every[mine].epochs[:-1]), [c for c in others if bracket_of(c.trial) == mine]
