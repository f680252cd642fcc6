"""The attempts this node holds: taken up, kept alive by leases, let go."""

import asyncio
import logging
import time
from collections.abc import Callable

from workers.supervise.attempt import Supervision, Workplace
from workers.supervise.endings import Ending
from workers.supervise.ledger import Assignment

log = logging.getLogger(__name__)


class Roster:
    """Claims, renews and watches. `room` returns None, or a sentence that says why nothing new may start."""

    def __init__(self, place: Workplace, *, room: Callable[[], str | None]) -> None:
        self._place = place
        self._room = room
        self._held: dict[int, Supervision] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.leaving = False

    @property
    def held(self) -> list[int]:
        """The attempts, running or still being written down."""
        return list(self._held)

    async def take_up(self) -> None:
        """Claim what is assigned to us."""
        if self.leaving or self._room() is not None:
            return
        for assignment in await self._place.ledger.assigned():
            claimed_at = time.monotonic()
            if assignment.attempt not in self._held and await self._place.ledger.claim(assignment.attempt):
                self._start(assignment, claimed_at)

    def _start(self, assignment: Assignment, claimed_at: float) -> None:
        supervision = Supervision(assignment, self._place, claimed_at=claimed_at)
        self._held[assignment.attempt] = supervision
        task = asyncio.create_task(supervision.run(), name=f"attempt {assignment.attempt}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _task: self._held.pop(assignment.attempt, None))
        if self.leaving:  # asked to leave while we claimed
            supervision.leave()

    async def renew(self) -> None:
        """Extend the leases of all, hear what their owners want, drop those that are not ours."""
        asked_at, held = time.monotonic(), dict(self._held)
        if not held:
            return
        wanted = await self._place.ledger.renew(list(held))
        for attempt, supervision in held.items():
            if attempt in wanted:
                supervision.renewed(asked_at, wanted[attempt])
            elif not supervision.over:
                log.warning("attempt %s is no longer ours", attempt)
                supervision.end(Ending.stale())

    def end_untrusted(self) -> None:
        """End every run whose lease we could not renew, before anybody else may start it."""
        now = time.monotonic()
        for attempt, supervision in self._held.items():
            if now > supervision.trusted_until and not supervision.over:
                log.error("the lease of attempt %s could not be renewed in time; ending its run", attempt)
                supervision.end(Ending.lease_lost())

    def leave(self) -> None:
        """Ask all runners for a last checkpoint."""
        self.leaving = True
        for supervision in self._held.values():
            supervision.leave()

    def end_all(self, ending: Ending) -> None:
        """End every run now."""
        for supervision in self._held.values():
            supervision.end(ending)

    async def wait(self, seconds: float) -> bool:
        """Wait until nothing is held any more; False when time is over."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)
        return not self._tasks

    def drop(self) -> None:
        """Let go of what is still being written: the reaper ends it."""
        for task in self._tasks:
            task.cancel()
