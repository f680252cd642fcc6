"""Polls the dashboard for releases, and reports the served versions."""

import asyncio
import logging
import random
import time

from workers.serving.health import Health
from workers.serving.processes import ProcessFacts
from workers.serving.releases.catalog import Catalog
from workers.serving.releases.dashboard import Dashboard, DashboardRefused, ReportRefused
from workers.serving.releases.endpoint import Endpoint
from workers.serving.traffic import Traffic

logger = logging.getLogger("trainyard.serving")

HEARTBEAT_SECONDS = 5.0
_MAX_PAUSE = 5.0


async def poll_releases(dashboard: Dashboard, catalog: Catalog, health: Health) -> None:
    """Poll for releases until cancelled. During a dashboard outage, serving continues unchanged."""
    after: int | None = None
    pause = 0.0
    while True:
        try:
            # After an outage at once: until then, the server counts as cut off.
            poll = await dashboard.poll(after, at_once=pause > 0)
        except OSError as error:  # DashboardUnavailable, or the token file is missing
            # Once for each outage, not for each try.
            if not pause:
                logger.warning("releases cannot be polled: %s", error)
            health.missed_releases(error)
            # Jitter, so that several servers do not all call a dashboard that has just restarted.
            pause = min(max(0.2, pause * 2), _MAX_PAUSE)
            await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311
            continue
        health.heard_releases()
        pause, after = 0.0, poll.sequence
        catalog.accept_all(poll.releases)


class Reporter:
    """Reports every endpoint after each change and when a count interval ends."""

    def __init__(
        self, dashboard: Dashboard, replica: str, instance: int, traffic: Traffic, health: Health
    ) -> None:
        self._dashboard, self._traffic, self._health = dashboard, traffic, health
        self._replica, self._instance = replica, instance
        self._is_last = False
        self._processes = ProcessFacts()
        self._pending = asyncio.Event()
        self._connected = True
        self._refused: set[str] = set()

    def changed(self) -> None:
        """Request a report. Several changes in one turn of the event loop make one report."""
        self._pending.set()

    async def run(self, catalog: Catalog) -> None:
        """Send reports until cancelled."""
        while True:
            await self.send_reports(catalog)
            await self._pending.wait()
            self._pending.clear()

    async def close_intervals(self) -> None:
        """Close a count interval and request a report every `HEARTBEAT_SECONDS` by the clock."""
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS - time.time() % HEARTBEAT_SECONDS)
            self._traffic.close_interval(time.time())
            self.changed()

    async def send_last(self, catalog: Catalog) -> None:
        """Report that the server stops, until no counts are left, or the dashboard does not answer."""
        self._is_last = True
        while True:
            self._pending.clear()
            await self.send_reports(catalog)
            if not (self._connected and self._pending.is_set()):
                return

    async def send_reports(self, catalog: Catalog) -> None:
        """Report every endpoint once. Counts that do not arrive are sent again with the next report."""
        await self._processes.refresh(catalog)
        try:
            for endpoint in list(catalog.endpoints.values()):
                await self._send(endpoint)
        except OSError as error:
            if self._connected:
                logger.warning("reports cannot be delivered: %s", error)
            self._connected = False
            # A refused one needs a person: no page shows the versions of this server.
            self._health.reports_error = error if isinstance(error, DashboardRefused) else None
        else:
            self._connected, self._health.reports_error = True, None

    async def _send(self, endpoint: Endpoint) -> None:
        traffic = self._traffic.report(endpoint.model)
        cut_off = self._health.cut_off
        facts = {
            **self._processes.facts(endpoint),
            "traffic": traffic,
            "instance": self._instance,
            "silent_seconds": None if cut_off is None else cut_off.seconds,
            "stops": self._is_last,
        }
        try:
            await self._dashboard.report(endpoint.report(self._replica).model_copy(update=facts))
        except ReportRefused as error:
            # The same report would be refused again, and those of other endpoints must not wait for it.
            if endpoint.model not in self._refused:
                logger.warning("reports about %s are refused: %s", endpoint.model, error)
            self._refused.add(endpoint.model)
        else:
            self._refused.discard(endpoint.model)
        if traffic is not None and self._traffic.confirm(endpoint.model):
            self.changed()
