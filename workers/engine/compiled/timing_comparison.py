"""Compares two variants of a training by timing, a measurement at a time and within a share of its time."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from workers.engine.compiled.training_time import TrainingTime
from workers.engine.phases import announce

ROUNDS = 5
"""Measurements of each variant. The shortest counts: other processes can only make one slower."""
ROUND_SECONDS = 0.1
"""Approximate duration of a measurement of the default variant."""
CLEAR_LOSS = 2.0
"""A candidate that takes this many times as long as the default is dropped at once."""
CALL_SECONDS = 0.005
"""Upper limit for the overhead of a call. It is not held against a measurement of one unit of work."""


class Variant(NamedTuple):
    """A way to do equal units of work, such as steps or epochs.

    Attributes:
        run: does this many units on copies of the state; returns the seconds without the copies.
        is_compiled: whether `run` has been compiled.
    """

    run: Callable[[int], float]
    is_compiled: bool


class TimingComparison:
    """Measures a default and a candidate in turn.

    Between two measurements the training continues. The first call of a variant compiles it and does not
    count. The next measurement takes a single unit; after it, a candidate that is clearly slower is dropped.

    Args:
        training_time: the program's; limits the time that timing takes.
        work: the work in a candidate's unit, as a multiple of a default's unit.
        guard: makes a context for each measurement.
    """

    def __init__(
        self,
        training_time: TrainingTime,
        work: int = 1,
        guard: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._training_time = training_time
        self._work = work
        self._guard = guard
        # Seconds per unit: the first, single unit of the candidate; then the measurements of both.
        self._first_candidate: float | None = None
        self._default: list[float] = []
        self._candidate: list[float] = []

    def measure_next(
        self, default: Variant, candidate: Variant, *, seconds: float, max_units: int, seconds_left: float
    ) -> float | None:
        """Do the next measurement if the limit allows it.

        Args:
            default: the variant in use.
            candidate: the other one.
            seconds: duration of a unit with the default.
            max_units: the most units in a measurement.
            seconds_left: until the current training ends.

        Returns:
            The candidate's duration for a unit, divided by the default's; None until it is known.
        """
        is_default = self._first_candidate is not None and len(self._default) == len(self._candidate)
        variant, times = (default, self._default) if is_default else (candidate, self._candidate)
        expected = seconds
        if not is_default:
            expected = max(seconds * self._work, *self._candidate, self._first_candidate or 0)
        is_first = not variant.is_compiled or (self._first_candidate is None and not is_default)
        units = 1 if is_first else max(1, min(max_units, int(ROUND_SECONDS / seconds)))
        cost = units * expected + (0.0 if variant.is_compiled else self._training_time.compile_seconds)
        if not self._training_time.timing_pays(cost, seconds_left):
            return None
        announce("timing")
        with self._guard(), self._training_time.timing():
            taken = variant.run(units) / units
        if not variant.is_compiled:
            return None
        if is_first:
            self._first_candidate = taken
            is_lost = taken - CALL_SECONDS > CLEAR_LOSS * self._work * seconds
            return taken / seconds if is_lost else None
        times.append(taken)
        return None if is_default else self._ratio()

    def _ratio(self) -> float | None:
        ratio = min(self._candidate) / min(self._default)
        return ratio if len(self._candidate) == ROUNDS or ratio > CLEAR_LOSS * self._work else None
