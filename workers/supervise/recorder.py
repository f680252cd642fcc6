"""Carries an attempt's events from its runner to the database: spool first, then in batches."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence

from pydantic import ValidationError

from jobs.contracts.control import Recorded
from jobs.contracts.events import RUNNER_EVENT, CheckpointCommitted, RunnerEvent
from jobs.errors import StaleFence, StaleState
from workers.supervise.backoff import Backoff
from workers.supervise.event_validation import Vetting
from workers.supervise.ledger import Ledger, LedgerAway, Stored
from workers.supervise.pace import Pace
from workers.supervise.spool import Spool
from workers.supervise.timing import Timing

log = logging.getLogger(__name__)

BURST = 3
"""Commits at once after a rest, so that no metric waits for the sample of memory or the line before it."""


class Recorder:
    """One writer for one attempt: at once where little is said, else one commit each `timing.commit` seconds.

    With the database away the spool grows and the run goes on; a batch is repeated unchanged until it is
    acknowledged, so nothing is lost or written twice.
    """

    def __init__(self, attempt: int, spool: Spool, ledger: Ledger, vetting: Vetting, timing: Timing) -> None:
        self._attempt = attempt
        self._spool = spool
        self._ledger = ledger
        self._vetting = vetting
        self._timing = timing
        self._pace = Pace(timing.commit, BURST)
        self._more = asyncio.Event()
        self._closing = asyncio.Event()
        self.acknowledged = 0
        self.tell: Callable[[Recorded], None] | None = None
        """Tells the runner which of its checkpoints are recorded, while there is one to be told."""

    def add(self, event: RunnerEvent) -> None:
        """Spool an event of our own. Raises OSError when the disk is full."""
        self.add_line(event.model_dump_json().encode())

    def add_line(self, line: bytes) -> None:
        """Spool a valid event line. Raises OSError when the disk is full."""
        self._spool.append(line)
        self._more.set()

    def close(self) -> None:
        """Nothing comes any more: `run` returns once everything is in the database."""
        self._closing.set()
        self._more.set()

    async def run(self) -> None:
        """Record until closed and done.

        Raises:
            StaleFence: the attempt is no longer ours.
            OSError: the artifact store's disk is full.
        """
        syncing = asyncio.create_task(self._keep_synced())
        try:
            while await self._wait_for_more():
                began = time.monotonic()
                await self._record_next()
                await self._pause(self._pace.taken(began))
        finally:
            syncing.cancel()

    async def _pause(self, seconds: float) -> None:
        """Let more events gather; what is left at the end waits for nothing."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)

    async def _wait_for_more(self) -> bool:
        while self.acknowledged == self._spool.size:
            if self._closing.is_set():
                return False
            self._more.clear()
            await self._more.wait()
        return True

    async def _record_next(self) -> None:
        batch = self._spool.read(self.acknowledged)
        events, stored = await self._vetting.vet([*_parsed(batch.lines)])
        await self._until_acknowledged(events, batch.end, stored)
        self.acknowledged = batch.end
        folders = tuple(event.folder for event in events if isinstance(event, CheckpointCommitted))
        if folders and self.tell is not None:
            self.tell(Recorded(folders=folders))

    async def _until_acknowledged(
        self, events: Sequence[RunnerEvent], end: int, stored: Mapping[str, Stored]
    ) -> None:
        backoff = Backoff(self._timing.retry_first, self._timing.retry_limit)
        while True:
            try:
                await self._ledger.record(self._attempt, events, spool_position=end, stored=stored)
                return
            except StaleFence:
                raise
            except (LedgerAway, StaleState) as error:
                # StaleState: the job's state moved meanwhile; the next try sees the new one.
                log.warning("attempt %s: %s events wait in the spool: %s", self._attempt, len(events), error)
                await asyncio.sleep(backoff.next())

    async def _keep_synced(self) -> None:
        while True:
            await asyncio.sleep(self._timing.sync)
            if self._spool.dirty:
                with contextlib.suppress(OSError):  # a full disk is noticed by the next append
                    await asyncio.to_thread(self._spool.sync)


def _parsed(lines: Sequence[bytes]) -> list[RunnerEvent]:
    events = []
    for line in lines:
        try:
            events.append(RUNNER_EVENT.validate_json(line))
        except ValidationError as error:  # it was valid when spooled: the disk has changed it
            log.error("a spooled event does not parse any more: %s", error)
    return events
