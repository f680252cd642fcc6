"""Probes and metrics of a worker, at the address of `--status-address`."""

import asyncio
import concurrent.futures
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from jobs.monitoring.exposition import Exposition
from jobs.monitoring.families import counter, gauge
from jobs.monitoring.status import Checks, start_listener
from transport.status import StatusListener
from workers.node.db_threads import abandoned_calls
from workers.node.gpu_inventory.metrics import gpu_families

if TYPE_CHECKING:
    from workers.node.membership import Membership

ANSWER_SECONDS = 3.0
"""A loop that needs longer to answer hangs. Its own steps take milliseconds, also with many runs."""


class NodeStatus:
    """The state of one node. Its loop computes each answer, so a loop that hangs gives none."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.membership: Membership | None = None
        self.is_draining = False

    def listen(self, address: str | None) -> StatusListener | None:
        """Answer probes and scrapes from now on. Raises `BadStatusAddress`."""
        return start_listener(
            address, Checks(self._hanging, self._missing), lambda: Exposition(self._families)
        )

    def _hanging(self) -> str | None:
        if self._ask() is None:
            return f"the worker's event loop has not answered within {ANSWER_SECONDS:.0f} s"
        return None

    def _missing(self) -> Sequence[str]:
        answer = self._ask()
        return ["loop"] if answer is None else answer[1]

    def _families(self) -> Iterator[Metric]:
        answer = self._ask()
        yield from () if answer is None else answer[0]

    def _ask(self) -> tuple[list[Metric], list[str]] | None:
        """Return the metrics and the missing parts, computed by the loop; None if it hangs."""
        asked = asyncio.run_coroutine_threadsafe(self._answer(), self._loop)
        try:
            return asked.result(ANSWER_SECONDS)
        except (TimeoutError, concurrent.futures.CancelledError):
            asked.cancel()
            return None

    async def _answer(self) -> tuple[list[Metric], list[str]]:
        return list(self._metrics()), self._missing_now()

    def _missing_now(self) -> list[str]:
        if self.is_draining:
            return ["draining"]
        membership = self.membership
        if membership is None:
            return ["registration"]
        missing = []
        if membership.seconds_unconfirmed > membership.lease_seconds:
            missing.append("database")
        if membership.no_room is not None:
            missing.append("disk")
        if membership.refusal is not None:
            missing.append("devices")
        return missing

    def _metrics(self) -> Iterator[Metric]:
        membership = self.membership
        yield gauge(
            "trainyard_worker_registered", "Whether it is registered as a worker.", membership is not None
        )
        yield gauge("trainyard_worker_draining", "Whether it takes nothing new.", self.is_draining)
        yield gauge(
            "trainyard_worker_abandoned_calls",
            "Calls of the database that were given up and still wait.",
            abandoned_calls(),
        )
        if membership is None:
            return
        yield gauge("trainyard_worker_slots", "Its slots.", membership.slots)
        yield gauge(
            "trainyard_worker_attempts", "Attempts that it holds.", len(membership.attempts.attempt_ids)
        )
        yield counter(
            "trainyard_worker_attempts_started",
            "Attempts that this process started.",
            membership.attempts.started,
        )
        yield gauge(
            "trainyard_worker_event_lag_seconds",
            "Age of the oldest event that is not recorded yet.",
            membership.attempts.event_lag(),
        )
        yield gauge(
            "trainyard_worker_heartbeat_age_seconds",
            "Time since the database confirmed the worker.",
            membership.seconds_unconfirmed,
        )
        yield from gpu_families(membership.devices)
        consumer = membership.consumer
        yield gauge(
            "trainyard_worker_consumer_silent_seconds",
            "Time since its message consumer received a message.",
            consumer.seconds_silent,
        )
        yield counter(
            "trainyard_worker_consumer_restarts", "Restarts of the message consumer.", consumer.restarts
        )
