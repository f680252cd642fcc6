"""Decides when a worker ends by itself: after a time without work, or at the end of its life."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from jobs.messages.worker_end import seconds_to_end
from workers.supervise.timing import Timing

STEP_SECONDS = 1.0


class Lifetime:
    """The limits of a worker's life.

    Args:
        idle_exit: seconds without work after which it ends; None: never.
        max_life: seconds after which it has ended; None: no limit.
        timing: how long its end may take.
        now: a monotonic clock.
    """

    def __init__(
        self,
        idle_exit: float | None,
        max_life: float | None,
        timing: Timing,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._idle_exit, self._max_life = idle_exit, max_life
        self._to_end = seconds_to_end(timing.grace, timing.upload_grace)
        self._now = now
        self._started = self._busy_until = now()
        self.ending = ""
        """Why it ends; empty while it does not."""

    def begin_idle(self) -> None:
        """Count the time without work from now on: before, nothing could be given to the worker."""
        self._busy_until = self._now()

    def check(self, *, busy: bool) -> bool:
        """Return whether the worker must begin to end now.

        Args:
            busy: whether it runs something.
        """
        now = self._now()
        if busy:
            self._busy_until = now
        left = self._seconds_left(now)
        if left is not None and left <= self._to_end:
            self.ending = f"It reaches the end of its life of {self._max_life:.0f} s (--max-life)."
        elif self._idle_exit is not None and now - self._busy_until >= self._idle_exit:
            self.ending = f"It ran nothing for {self._idle_exit:.0f} s (--idle-exit)."
        return bool(self.ending)

    async def wait(self, is_busy: Callable[[], bool]) -> None:
        """Return when the worker must begin to end; without limits never."""
        if self._idle_exit is None and self._max_life is None:
            await asyncio.Event().wait()
        while not self.check(busy=is_busy()):
            await asyncio.sleep(STEP_SECONDS)

    def info(self) -> dict[str, Any]:
        """Return the limits for the worker's row."""
        left = self._seconds_left(self._now())
        facts = {
            "idle_exit_seconds": self._idle_exit,
            "max_life_seconds": self._max_life,
            "seconds_left": None if left is None else round(max(left, 0.0)),
            "ending": self.ending or None,
        }
        return {name: fact for name, fact in facts.items() if fact is not None}

    def _seconds_left(self, now: float) -> float | None:
        return None if self._max_life is None else self._started + self._max_life - now
