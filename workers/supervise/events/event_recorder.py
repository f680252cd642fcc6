"""Writes an attempt's events to the spool, and from there to the database in batches."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence

from pydantic import ValidationError

from jobs.errors import StaleFence, StaleState
from jobs.messages.control import Recorded
from jobs.messages.events import RUNNER_EVENT, CheckpointCommitted, RunnerEvent
from workers.supervise.attempt_repository import (
    AttemptRepository,
    DatabaseUnavailable,
    StoredArtifact,
)
from workers.supervise.backoff import Backoff
from workers.supervise.events.event_validation import EventValidator
from workers.supervise.events.quota_watch import CHECK_BYTES, QuotaWatch
from workers.supervise.events.rate_limiter import RateLimiter
from workers.supervise.events.spool import BATCH_BYTES, Batch, Spool
from workers.supervise.timing import Timing

log = logging.getLogger(__name__)

# Commits allowed at once after a pause: a metric does not wait because a memory sample or a log line was
# committed just before it.
BURST = 3


class EventRecorder:
    """One attempt's only writer: commits at once under low load, else once each `timing.commit` seconds.

    While the database is unavailable the run continues and the spool grows. A batch is repeated unchanged
    until it is acknowledged, so no event is lost or written twice. After checkpoints and many
    events the disk quota is checked, which may end the run; the events that it has sent are still recorded.

    Args:
        attempt: the attempt.
        spool: has the events that are not in the database yet.
        repository: writes them to the database.
        validator: checks the files that they name.
        timing: intervals.
        quotas: checks the disk quota.
    """

    def __init__(
        self,
        attempt: int,
        spool: Spool,
        repository: AttemptRepository,
        validator: EventValidator,
        timing: Timing,
        quotas: QuotaWatch,
    ) -> None:
        self._attempt = attempt
        self._spool = spool
        self._repository = repository
        self._validator = validator
        self._timing = timing
        self._quotas = quotas
        self._unchecked = 0
        # The events of lines in the spool that were validated before, by the position of their line.
        self._validated: dict[int, RunnerEvent] = {}
        self._rate_limiter = RateLimiter(timing.commit, BURST)
        self._more = asyncio.Event()
        self._closing = asyncio.Event()
        # The position in the spool up to which the database has all events.
        self.acknowledged = 0
        self._waiting_since: float | None = None
        self.notify_runner: Callable[[Recorded], None] | None = None
        """Sends the runner the names of its recorded checkpoints; None while there is no runner."""
        self.on_checkpoints: Callable[[Sequence[CheckpointCommitted]], None] | None = None
        """Receives checkpoints once they are in the database."""

    def add(self, event: RunnerEvent) -> None:
        """Append a supervisor's event to the spool. Raises OSError when the disk is full."""
        self.add_line(event.model_dump_json().encode())

    def add_line(self, line: bytes, event: RunnerEvent | None = None) -> None:
        """Append a valid event line to the spool. Raises OSError when the disk is full.

        Args:
            line: the event as JSON.
            event: the same event, if it was read from this line.
        """
        position = self._spool.size
        self._spool.append(line)
        if self._waiting_since is None:
            self._waiting_since = time.monotonic()
        # Only as much as one batch: during an outage of the database, the spool may exceed the memory.
        if event is not None and position - self.acknowledged < BATCH_BYTES:
            self._validated[position] = event
        self._more.set()

    def lag(self) -> float:
        """Return for how long the oldest event waits that is not in the database; 0 without one."""
        return 0.0 if self._waiting_since is None else time.monotonic() - self._waiting_since

    def close(self) -> None:
        """Accept no more events: `run` returns once all are in the database."""
        self._closing.set()
        self._more.set()

    async def run(self) -> None:
        """Record events until closed and all are written.

        Raises:
            StaleFence: the worker no longer holds the attempt.
            OSError: the artifact store's disk is full.
        """
        syncing = asyncio.create_task(self._keep_synced())
        try:
            while await self._wait_for_more():
                began = time.monotonic()
                await self._record_next()
                # Wait for more events to batch; after `close`, the rest is written at once.
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), self._rate_limiter.delay_after(began))
        finally:
            syncing.cancel()

    async def _wait_for_more(self) -> bool:
        while self.acknowledged == self._spool.size:
            if self._closing.is_set():
                return False
            self._more.clear()
            await self._more.wait()
        return True

    async def _record_next(self) -> None:
        began = time.monotonic()
        batch = self._spool.read(self.acknowledged)
        events, stored = await self._validator.validate(self._events_of(batch))
        await self._record_until_acknowledged(events, batch.end, stored)
        size, self.acknowledged = batch.end - self.acknowledged, batch.end
        # Those that are left came after the batch was read.
        self._waiting_since = None if batch.end == self._spool.size else began
        # A full disk is noticed by the next append.
        with contextlib.suppress(OSError):
            self._spool.discard(batch.end)
        # Only after the commit: the runner may delete older checkpoints once it knows of these.
        committed = [event for event in events if isinstance(event, CheckpointCommitted)]
        folders = tuple(event.folder for event in committed)
        if committed and self.on_checkpoints is not None:
            self.on_checkpoints(committed)
        if folders and self.notify_runner is not None:
            self.notify_runner(Recorded(folders=folders))
        self._unchecked += size
        if folders or self._unchecked >= CHECK_BYTES:
            self._unchecked = 0
            await self._quotas.check_disk()

    def _events_of(self, batch: Batch) -> list[RunnerEvent]:
        """Return the events in the spool's next lines."""
        events, position = [], self.acknowledged
        for line in batch.lines:
            event = self._validated.pop(position, None)
            position += len(line) + 1
            try:
                events.append(RUNNER_EVENT.validate_json(line) if event is None else event)
            # It was valid when it was appended, so the file was damaged. The other events are still recorded.
            except ValidationError as error:
                log.error("a spooled event is damaged and was dropped: %s", error)
        return events

    async def _record_until_acknowledged(
        self, events: Sequence[RunnerEvent], end: int, stored: Mapping[str, StoredArtifact]
    ) -> None:
        backoff = Backoff(self._timing.retry_first, self._timing.retry_limit)
        while True:
            try:
                await self._repository.record(self._attempt, events, spool_position=end, stored=stored)
                return
            except StaleFence:
                raise
            except (DatabaseUnavailable, StaleState) as error:
                # StaleState: the job's state changed concurrently; retry with the new one.
                log.warning(
                    "attempt %s: %s events remain in the spool: %s", self._attempt, len(events), error
                )
                await asyncio.sleep(backoff.next())

    async def _keep_synced(self) -> None:
        while True:
            await asyncio.sleep(self._timing.sync)
            if self._spool.dirty:
                # A full disk is noticed by the next append.
                with contextlib.suppress(OSError):
                    await asyncio.to_thread(self._spool.sync)
