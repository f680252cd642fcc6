"""Decides by the holder's clock whether an attempt may run: while its lease certainly lasts."""

import asyncio
import time


class HeldLease:
    """An attempt's lease as its holder knows it.

    The holder cannot distinguish an outage of the database from one that affects it alone, and then another
    worker gets the attempt once the lease has expired. Its run is therefore suspended before that moment. It
    continues after a renewal, which proves that the attempt is still held, and ends if the attempt is not.

    Args:
        requested_at: when the claim was requested, by `jobs.lease_clock`.
        validity: the seconds after a request during which the lease certainly lasts. The database may have
            begun it at any time from the request on.
    """

    def __init__(self, requested_at: float, validity: float) -> None:
        self._validity = validity
        self.valid_until = requested_at + validity
        self._suspended_at: float | None = None
        self._suspended_before = 0.0
        self._may_run, self._must_wait = asyncio.Event(), asyncio.Event()
        self._may_run.set()

    def renewed(self, requested_at: float) -> None:
        """Note that a renewal, requested at this time, found the attempt held."""
        self.valid_until = max(self.valid_until, requested_at + self._validity)

    @property
    def suspended(self) -> bool:
        """Whether the run must not continue at present."""
        return self._suspended_at is not None

    @property
    def seconds_suspended(self) -> float:
        """For how long the run was suspended in all."""
        now = time.monotonic()
        return self._suspended_before + (0.0 if self._suspended_at is None else now - self._suspended_at)

    def check(self, now: float) -> bool:
        """Suspend or resume the run by the time of `jobs.lease_clock`. Return whether that has changed."""
        must_wait = now > self.valid_until
        if must_wait == self.suspended:
            return False
        if must_wait:
            # Not `now`: a sleep of the machine is no time of the run, nor one of its suspension.
            self._suspended_at = time.monotonic()
        else:
            self._suspended_before, self._suspended_at = self.seconds_suspended, None
        for event, is_set in ((self._must_wait, must_wait), (self._may_run, not must_wait)):
            event.set() if is_set else event.clear()
        return True

    async def until_suspended(self) -> None:
        """Wait until the run must not continue."""
        await self._must_wait.wait()

    async def until_allowed(self) -> None:
        """Wait until the run may continue."""
        await self._may_run.wait()
