"""Applies a project's quotas to script reports: events a second, and disk space."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol
from weakref import WeakValueDictionary

from jobs.actions.runs import run_quotas
from jobs.actions.search import script_reports
from jobs.models import Job
from workers.supervise.events.event_pace import EventPace

CHECK_EVENTS = 2**20
"""The disk quota is checked each time that the scripts have reported so many events, about 16 MiB."""
LONGEST_SLEEP = 0.5
"""Seconds. A waiting report follows a change of the share after at most this time."""


class Database(Protocol):
    """Runs functions that use the database."""

    def __call__[T](self, function: Callable[[], T], /) -> Awaitable[T]: ...


class ReportQuota:
    """Delays script reports that are above the search's share of its project's events.

    KerasTuner's scripts do not repeat a call that was refused, so the answer to a report above the share
    comes later instead, and nothing is lost. Of each connection, one report at a time waits for the others:
    a script that sends many at once does not take the turns of other scripts in its search.

    Args:
        job_id: the search.
        database: runs functions that use the database.
    """

    def __init__(self, job_id: int, database: Database) -> None:
        self._job_id = job_id
        self._database = database
        self._pace = EventPace()
        self._connections = WeakValueDictionary[str, asyncio.Lock]()
        # Without it, of several reports that wait, always the same one could find room.
        self._next = asyncio.Lock()
        self._unchecked_events = 0
        self._is_warned = False

    async def follow_share(self) -> None:
        """Store the search's rate for its project's other runs, and set the pace to its share."""
        rate = self._pace.measured()
        share = partial(run_quotas.share_events_of_scripts, self._job_id, rate)
        self._pace.set_rate(await self._database(share))

    def lift(self) -> None:
        """Let the waiting reports be recorded at once, because the chief ends."""
        self._pace.lift()

    @asynccontextmanager
    async def turn(self, peer: str, cost: int) -> AsyncIterator[None]:
        """Wait until a report may be recorded.

        Args:
            peer: the script's connection.
            cost: as how many events the report counts; see `jobs.messages.event_cost`.

        Raises:
            QuotaReached: the scripts have reported much, and their project is above its disk quota.
        """
        async with self._connections.setdefault(peer, asyncio.Lock()):
            async with self._next:
                while delay := self._pace.delay():
                    await self._warn_once()
                    await asyncio.sleep(min(delay, LONGEST_SLEEP))
                self._pace.spend(cost)
            self._unchecked_events += cost
            if self._unchecked_events >= CHECK_EVENTS:
                await self._database(self._require_within_disk)
                self._unchecked_events = 0
            yield

    def _require_within_disk(self) -> None:
        run_quotas.require_job_within_disk(Job.objects.select_related("project").get(pk=self._job_id))

    async def _warn_once(self) -> None:
        if not self._is_warned:
            self._is_warned = True
            await self._database(partial(script_reports.warn_over_quota, self._job_id))
