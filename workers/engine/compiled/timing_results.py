"""Stores the timing results of a model's programs, so each model is timed once for each kind of machine."""

import contextlib
from collections.abc import Iterator
from typing import Literal, get_args

from workers.engine.compiled import aot, cache

StepMode = Literal["many", "one"]
STEP_MODES: tuple[StepMode, ...] = get_args(StepMode)
"""Many steps in one call of a compiled loop, or one step in each call. Results differ only by rounding."""
STEP_MODE = "step-mode"
"""Name of the result of timing both step modes."""
UNKNOWN = "unknown"
"""Stored in place of a result that is not known yet."""


def cost_name(count: int) -> str:
    """Return the name under which the relative cost for `count` trainings is stored."""
    return f"cost-{count}"


class TimingResults:
    """Timing results for one model's programs, stored beside them.

    Args:
        key: the programs' `program_key`.

    Attributes:
        step_mode: the faster mode; None until it has been timed.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._costs: dict[int, float] = {}
        stored = self._read(STEP_MODE)
        self.step_mode = next((mode for mode in STEP_MODES if stored == mode), None)

    def set_step_mode(self, mode: StepMode) -> None:
        """Store the faster mode."""
        self.step_mode = mode
        self._write(STEP_MODE, mode)

    def relative_cost(self, count: int) -> float | None:
        """Return the time for a vmapped epoch with `count` trainings, in single epochs; None if unknown."""
        if count not in self._costs and (stored := self._read(cost_name(count))) is not None:
            # The file may be damaged, or its measurement unfinished: then the cost is timed again.
            with contextlib.suppress(ValueError):
                self._costs[count] = float(stored)
        return self._costs.get(count)

    def set_relative_cost(self, count: int, cost: float) -> None:
        """Store the relative cost for `count` trainings. See `relative_cost`."""
        self._costs[count] = cost
        self._write(cost_name(count), repr(cost))

    @contextlib.contextmanager
    def assumed(self, name: str, value: str) -> Iterator[None]:
        """Return a context for a risky measurement, in which other processes read `value` as its result.

        If this process dies in it, no later one tries the same again. After any other end the result is
        unknown until it is set.

        Args:
            name: `STEP_MODE`, or what `cost_name` returns.
            value: the result to assume.
        """
        self._write(name, value)
        yield
        self._write(name, UNKNOWN)

    def _write(self, name: str, value: str) -> None:
        if (programs := cache.active()) is not None:
            programs.put(self._file(name), value.encode())

    def _read(self, name: str) -> str | None:
        programs = cache.active()
        stored = programs.get(self._file(name)) if programs is not None else None
        return None if stored is None else stored.decode(errors="replace")

    def _file(self, name: str) -> str:
        # Another processor, library or setting may make another mode the faster one.
        return f"{name}-{aot.json_digest({'key': self._key, 'fingerprint': aot.fingerprint()})}"
