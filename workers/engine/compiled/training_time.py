"""Records how long a program trains. The number of steps per call and the limit for timing depend on it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

TIMING_SHARE = 0.05
"""Compiling and timing another way to train take at most this share of the time already trained."""
SHARE_AT_THE_END = 0.5
"""Where the training ends sooner than a measurement, only later trainings can profit from its result. It is
done if timing takes at most this part of `TIMING_SHARE`."""
MIN_COMPILE_SECONDS = 1.0
"""Lower bound for compiling another way: the measured first call may have come out of the cache."""
TARGET_CALL_SECONDS = 0.25
"""Target duration of a call: requests are served and progress is reported between calls."""
MAX_CALL_SECONDS = 10.0
"""Limit for a call of a fixed number of steps: the watchdog ends a run without progress."""


class CallLength:
    """How many steps one call to a program has, found by doubling unless it is fixed.

    Args:
        fixed: the step count, lowered only if a call takes longer than `MAX_CALL_SECONDS`; None finds
            it.

    Attributes:
        steps: steps in the next call.
        settled: whether the number is fixed, or a call has reached half the target duration.
        is_fixed: whether it was given.
    """

    def __init__(self, fixed: int | None = None) -> None:
        self.steps = fixed or 1
        self.is_fixed = self.settled = fixed is not None

    def record(self, steps: int, seconds: float) -> None:
        """Adjust the step count after a call with `steps` steps that took `seconds`."""
        if not self.is_fixed and seconds < TARGET_CALL_SECONDS / 2:
            # `steps` may be fewer than allowed, at the end of an epoch: then nothing is learned about more.
            self.steps = max(self.steps, 2 * steps)
            return
        self.settled = True
        limit = MAX_CALL_SECONDS if self.is_fixed else 2 * TARGET_CALL_SECONDS
        if seconds > limit and self.steps > 1:
            self.steps //= 2


class TrainingTime:
    """Time that all trainings with a program have taken so far, and how much timing may cost.

    Attributes:
        seconds: without the first call, which includes compilation.
        steps: steps done in that time.
        timing_seconds: spent on compiling and timing other ways to train.
        fastest_step: shortest mean duration that a step had in any call, in seconds.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.steps = 0
        self.timing_seconds = 0.0
        self.fastest_step = float("inf")
        self._first_call_seconds: float | None = None

    def record(self, steps: int, seconds: float) -> None:
        """Add a call with `steps` steps that took `seconds`."""
        if self._first_call_seconds is None:
            self._first_call_seconds = seconds
            return
        self.seconds += seconds
        self.steps += steps
        self.fastest_step = min(self.fastest_step, seconds / steps)

    @property
    def seconds_per_step(self) -> float:
        """A step's mean duration. `steps` must not be 0."""
        return self.seconds / self.steps

    @property
    def compile_seconds(self) -> float:
        """Estimated time for compiling another way to train the same model: as for the first call."""
        return max(self._first_call_seconds or 0.0, MIN_COMPILE_SECONDS)

    def timing_pays(self, cost: float, rest: float) -> bool:
        """Return whether another `cost` seconds may be spent on timing now.

        Args:
            cost: how long the next measurement takes, estimated, with compilation if it is needed.
            rest: estimated seconds until the current training ends.
        """
        total, limit = self.timing_seconds + cost, TIMING_SHARE * self.seconds
        return total <= limit and (rest > cost or total <= SHARE_AT_THE_END * limit)

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Return a context whose duration counts as spent on timing."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.timing_seconds += time.perf_counter() - began
