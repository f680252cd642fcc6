"""Polls the dashboard for releases, and reports the served versions."""

import asyncio
import logging
import random
from collections.abc import Sequence

from jobs.contracts.release import ReplicaReport
from workers.serving.releases.catalog import Catalog
from workers.serving.releases.dashboard import Dashboard

logger = logging.getLogger("trainyard.serving")

HEARTBEAT_SECONDS = 5.0
_MAX_PAUSE = 5.0


async def poll_releases(dashboard: Dashboard, catalog: Catalog) -> None:
    """Poll for releases until cancelled. During an outage of the dashboard, serving continues unchanged."""
    after: int | None = None
    pause = 0.0
    while True:
        try:
            poll = await dashboard.poll(after)
        except OSError as error:  # DashboardUnavailable, or the token file is missing
            # Once for each outage, not for each try.
            if not pause:
                logger.warning("releases cannot be polled: %s", error)
            # Jitter, so that several servers do not all call a dashboard that has just restarted.
            pause = min(max(0.2, pause * 2), _MAX_PAUSE)
            await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311
            continue
        pause, after = 0.0, poll.sequence
        for body in poll.releases:
            catalog.accept(body)


class Reporter:
    """Reports every endpoint after each change and at each heartbeat."""

    def __init__(self, dashboard: Dashboard, replica: str) -> None:
        self._dashboard, self._replica = dashboard, replica
        self._pending = asyncio.Event()
        self._connected = True

    def changed(self) -> None:
        """Request a report. Several changes in one turn of the event loop make one report."""
        self._pending.set()

    async def run(self, catalog: Catalog) -> None:
        """Send reports until cancelled."""
        while True:
            await self._send_reports(
                [endpoint.report(self._replica) for endpoint in catalog.endpoints.values()]
            )
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await self._pending.wait()
            except TimeoutError:
                pass
            self._pending.clear()

    async def _send_reports(self, reports: Sequence[ReplicaReport]) -> None:
        try:
            for report in reports:
                await self._dashboard.report(report)
        except OSError as error:
            if self._connected:
                logger.warning("reports cannot be delivered: %s", error)
            self._connected = False
        else:
            self._connected = True
