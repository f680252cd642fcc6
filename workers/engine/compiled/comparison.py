"""Compares two ways to train by timing, a measurement at a time and within a share of the time trained."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from workers.engine.compiled.phases import announce
from workers.engine.compiled.training_time import TrainingTime

ROUNDS = 5
"""Measurements of each way. The shortest counts: other processes can only make one slower."""
ROUND_SECONDS = 0.1
"""Approximate duration of a measurement of the usual way."""
CLEAR_LOSS = 2.0
"""A candidate that takes this many times as long as the usual way is dropped at once."""
CALL_SECONDS = 0.005
"""Upper limit for the overhead of a call. It is not held against a measurement of one step."""


class Way(NamedTuple):
    """A way to do a number of equal pieces of work, such as steps.

    Attributes:
        run: does this many pieces on copies of the state; returns the seconds without the copies.
        is_compiled: whether `run` has been compiled.
    """

    run: Callable[[int], float]
    is_compiled: bool


class Comparison:
    """Measures a usual way and a candidate in turn.

    Between two measurements the training continues. The first call of a way compiles it and does not count.
    The next measurement is of a single piece, after which a candidate that is clearly slower is dropped.

    Args:
        training_time: of the program; limits the time that timing takes.
        work: how many times the work of a piece of the usual way a piece of the candidate does.
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
        self._first: float | None = None
        self._usual: list[float] = []
        self._candidate: list[float] = []

    def advance(self, usual: Way, candidate: Way, *, seconds: float, most: int, rest: float) -> float | None:
        """Do the next measurement if the limit allows it.

        Args:
            usual: the way in use.
            candidate: the other way.
            seconds: duration of a piece in the usual way.
            most: the most pieces of a measurement.
            rest: seconds until the current training ends.

        Returns:
            The duration of a piece of the candidate divided by that of the usual way; None until it is known.
        """
        measures_usual = self._first is not None and len(self._usual) == len(self._candidate)
        way, times = (usual, self._usual) if measures_usual else (candidate, self._candidate)
        expected = (
            seconds if measures_usual else max(seconds * self._work, *self._candidate, self._first or 0)
        )
        is_first = not way.is_compiled or (self._first is None and not measures_usual)
        pieces = 1 if is_first else max(1, min(most, int(ROUND_SECONDS / seconds)))
        cost = pieces * expected + (0.0 if way.is_compiled else self._training_time.compile_seconds)
        if not self._training_time.timing_pays(cost, rest):
            return None
        announce("timing")
        with self._guard(), self._training_time.timing():
            taken = way.run(pieces) / pieces
        if not way.is_compiled:
            return None
        if is_first:
            self._first = taken
            lost = taken - CALL_SECONDS > CLEAR_LOSS * self._work * seconds
            return taken / seconds if lost else None
        times.append(taken)
        return None if measures_usual else self._ratio()

    def _ratio(self) -> float | None:
        ratio = min(self._candidate) / min(self._usual)
        return ratio if len(self._candidate) == ROUNDS or ratio > CLEAR_LOSS * self._work else None
