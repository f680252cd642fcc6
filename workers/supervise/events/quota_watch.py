"""Applies a project's quotas to one attempt: its share of the events, and the project's disk space."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from jobs.errors import QuotaReached, StaleFence
from workers.supervise.attempt_end import AttemptEnd
from workers.supervise.attempt_repository import AttemptRepository, DatabaseUnavailable
from workers.supervise.events.event_pace import EventPace
from workers.supervise.limits.folder_use import FolderUse
from workers.supervise.timing import Timing

log = logging.getLogger(__name__)

CHECK_BYTES = 16 * 2**20
"""The disk quota is checked each time that a run has added so many bytes of events, or of its own files.

A run that adds little continues in a project that is full."""
WALK_PAUSES = 20
"""The time between two measurements of a run's files, in multiples of the time that one takes."""


class QuotaWatch:
    """Asks for the event share, and ends the attempt above its project's disk quota.

    Args:
        attempt: the attempt.
        repository: knows the quotas.
        timing: how often it is asked.
        end: ends the attempt.
    """

    def __init__(
        self, attempt: int, repository: AttemptRepository, timing: Timing, end: Callable[[AttemptEnd], None]
    ) -> None:
        self._attempt = attempt
        self._repository = repository
        self._timing = timing
        self._end = end
        self.pace = EventPace()

    async def follow_events(self) -> None:
        """Keep the pace at the attempt's share of its project's event quota."""
        while True:
            # Without a database the last share stays; the renewal ends an attempt that is not held.
            with contextlib.suppress(DatabaseUnavailable, StaleFence):
                share = await self._repository.share_events(self._attempt, self.pace.measured())
                self.pace.set_rate(share)
            await asyncio.sleep(self._timing.quota)

    async def watch_files(self, folders: Sequence[Path], stored_bytes: Callable[[], int]) -> None:
        """Check the disk quota whenever the run has written many bytes into its own folders.

        Args:
            folders: its folders.
            stored_bytes: returns the bytes in those files that are also in the store, which counts them.
        """
        use = await asyncio.to_thread(FolderUse, folders)
        checked, seconds = 0, 0.0
        while True:
            # A walk over very many files must not take much of the node's time.
            await asyncio.sleep(max(self._timing.quota, WALK_PAUSES * seconds))
            began = time.monotonic()
            added = await asyncio.to_thread(use.added) - stored_bytes()
            seconds = time.monotonic() - began
            if added >= checked + CHECK_BYTES:
                checked = added
                await self.check_disk(beside=added)

    async def check_disk(self, *, beside: int = 0) -> None:
        """End the attempt if its project is above its disk quota, with `beside` bytes that no row counts."""
        try:
            await self._repository.require_within_disk(self._attempt, beside=beside)
        except (QuotaReached, StaleFence) as error:
            self._end(AttemptEnd.from_error(error))
        # An outage of the database stops no run.
        except DatabaseUnavailable as error:
            log.warning("attempt %s: the disk quota was not checked: %s", self._attempt, error)
