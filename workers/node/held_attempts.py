"""Claims attempts, renews their leases and ends them."""

import asyncio
import logging
from collections.abc import Callable

from jobs import lease_clock
from workers.supervise.attempt.attempt import AttemptSupervisor
from workers.supervise.attempt.node_context import NodeContext
from workers.supervise.attempt_end import AttemptEnd
from workers.supervise.attempt_repository import Assignment

log = logging.getLogger(__name__)


class HeldAttempts:
    """The attempts that this node runs.

    `disk_shortage` returns None, or the reason why nothing new may start.
    """

    def __init__(self, node: NodeContext, *, disk_shortage: Callable[[], str | None]) -> None:
        self._node = node
        self._disk_shortage = disk_shortage
        self._supervisors: dict[int, AttemptSupervisor] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.draining = False
        self.started = 0
        """Attempts that were started so far."""

    def event_lag(self) -> float:
        """Return the age of the oldest event that is not in the database, in seconds; 0 without one."""
        return max((supervisor.event_lag() for supervisor in self._supervisors.values()), default=0.0)

    @property
    def attempt_ids(self) -> list[int]:
        """Attempts that run, or whose events and end are still being written."""
        return list(self._supervisors)

    async def claim_assigned(self) -> None:
        """Claim and start the attempts that are assigned to this worker; while it drains, decline them."""
        if self.draining:
            await self._node.repository.decline_assigned()
            return
        if self._disk_shortage() is not None:
            return
        for assignment in await self._node.repository.assigned():
            # Measured before the claim: the database may start the lease at any time during the call.
            claimed_at = lease_clock.now()
            if await self._claim(assignment.attempt):
                self._start(assignment, claimed_at)

    async def _claim(self, attempt: int) -> bool:
        # `drain` may have been called since the attempts were listed.
        if self.draining or attempt in self._supervisors:
            return False
        return await self._node.repository.claim(attempt)

    def _start(self, assignment: Assignment, claimed_at: float) -> None:
        supervisor = AttemptSupervisor(assignment, self._node, claimed_at=claimed_at)
        self._supervisors[assignment.attempt] = supervisor
        self.started += 1
        task = asyncio.create_task(supervisor.run(), name=f"attempt {assignment.attempt}")
        # The event loop holds only weak references to tasks.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _task: self._supervisors.pop(assignment.attempt, None))
        # `drain` may have been called during the claim, when this supervisor did not exist yet.
        if self.draining:
            supervisor.drain()

    async def renew(self) -> None:
        """Renew all leases, apply the desired states, and end attempts that this worker no longer holds."""
        # A copy: an attempt that is claimed during the call is missing in the answer, but is held.
        requested_at, supervisors = lease_clock.now(), dict(self._supervisors)
        if not supervisors:
            return
        desired = await self._node.repository.renew(list(supervisors))
        for attempt, supervisor in supervisors.items():
            if attempt in desired:
                supervisor.lease_renewed(requested_at, desired[attempt])
            elif not supervisor.ended:
                log.warning("attempt %s is no longer held by this worker", attempt)
                supervisor.end(AttemptEnd.stale())

    def check_leases(self) -> None:
        """Suspend runs whose leases may have expired, before another worker may start them; resume others."""
        now = lease_clock.now()
        for attempt, supervisor in self._supervisors.items():
            if supervisor.ended or not supervisor.lease.check(now):
                continue
            if supervisor.lease.suspended:
                log.error("attempt %s is suspended: its lease could not be renewed in time", attempt)
            else:
                log.warning("attempt %s continues after a renewal of its lease", attempt)

    def drain(self) -> None:
        """Claim nothing more, and ask all runners to write a checkpoint and yield."""
        self.draining = True
        for supervisor in self._supervisors.values():
            supervisor.drain()

    def close(self) -> None:
        """End the threads that call the database for these attempts."""
        self._node.repository.close()

    def end_all(self, ending: AttemptEnd) -> None:
        for supervisor in self._supervisors.values():
            supervisor.end(ending)

    def skip_uploads(self) -> None:
        """Write the ends of all attempts without waiting for the copies of their checkpoints."""
        for supervisor in self._supervisors.values():
            supervisor.skip_uploads()

    async def wait_until_empty(self, seconds: float) -> bool:
        """Wait until all attempts have ended; return False on a timeout."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)
        return not self._tasks

    def abandon(self) -> None:
        """Stop writing the attempts that remain. The reaper ends them when their leases expire."""
        for task in self._tasks:
            task.cancel()
