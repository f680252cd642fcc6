"""Two loops: learn of releases by long poll, report what is served."""

import asyncio
import logging
import random
from collections.abc import Sequence

from jobs.contracts.release import ReplicaReport
from workers.serving.releases.catalog import Catalog
from workers.serving.releases.dashboard import Dashboard

logger = logging.getLogger("trainyard.serving")

HEARTBEAT_SECONDS = 5.0
_LONGEST_PAUSE = 5.0


async def follow(dashboard: Dashboard, catalog: Catalog) -> None:
    """Ask for releases for ever; an outage of the dashboard changes nothing of what is served."""
    after: int | None = None
    pause = 0.0
    while True:
        try:
            poll = await dashboard.poll(after)
        except OSError as error:  # DashboardAway, or the token file is not there
            if not pause:
                logger.warning("cannot learn of releases: %s", error)
            pause = min(max(0.2, pause * 2), _LONGEST_PAUSE)
            await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311
            continue
        pause, after = 0.0, poll.sequence
        for body in poll.releases:
            catalog.take(body)


class Reporter:
    """Reports every endpoint after each change, and as a heartbeat."""

    def __init__(self, dashboard: Dashboard, replica: str) -> None:
        self._dashboard, self._replica = dashboard, replica
        self._news = asyncio.Event()
        self._heard = True

    def changed(self) -> None:
        """Report soon; several changes in one turn make one report."""
        self._news.set()

    async def run(self, catalog: Catalog) -> None:
        """Report for ever."""
        while True:
            await self._round([endpoint.report(self._replica) for endpoint in catalog.endpoints.values()])
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await self._news.wait()
            except TimeoutError:
                pass
            self._news.clear()

    async def _round(self, reports: Sequence[ReplicaReport]) -> None:
        try:
            for report in reports:
                await self._dashboard.report(report)
        except OSError as error:
            if self._heard:
                logger.warning("nobody hears our reports: %s", error)
            self._heard = False
        else:
            self._heard = True
