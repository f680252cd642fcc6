"""Repeats an attempt's calls to the database while it is unavailable."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from jobs.errors import StaleFence, StaleState
from workers.supervise.attempt_end import AttemptEnd
from workers.supervise.attempt_repository import AttemptRepository, DatabaseUnavailable
from workers.supervise.backoff import Backoff
from workers.supervise.timing import Timing

log = logging.getLogger(__name__)

MAX_REFUSALS = 5
"""How often an end that the job's state refuses is tried before it is left to the reaper."""


class DatabaseCalls:
    """The database as one attempt calls it.

    Args:
        attempt: the attempt.
        repository: makes the calls.
        timing: how long to wait between two tries.
        ending: the attempt's end.
    """

    def __init__(
        self,
        attempt: int,
        repository: AttemptRepository,
        timing: Timing,
        ending: "asyncio.Future[AttemptEnd]",
    ) -> None:
        self._attempt = attempt
        self._repository = repository
        self._timing = timing
        self._ending = ending

    async def repeat[T](self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat a call until the database answers."""
        backoff = self._backoff()
        while True:
            try:
                return await call()
            except DatabaseUnavailable as error:
                log.warning("attempt %s: %s", self._attempt, error)
                await asyncio.sleep(backoff.next())

    async def repeat_until_end(self, call: Callable[[], Awaitable[None]]) -> None:
        """Repeat a write until the database has it, or the run has ended."""
        writing = asyncio.create_task(self.repeat(call))
        first: list[asyncio.Future[Any]] = [writing, self._ending]
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if writing.done():
            writing.result()
        writing.cancel()

    async def finish(self, ending: AttemptEnd) -> None:
        """Write the end. Without a database this waits; the reaper may end the attempt first."""
        refusals, backoff = 0, self._backoff()
        while ending.owned and refusals < MAX_REFUSALS:
            try:
                await self._repository.finish(self._attempt, ending)
                return
            except StaleFence as error:
                log.warning("%s", error)
                return
            # The owner may change the job's state at the same time. A retry reads the new state.
            except StaleState as error:
                refusals += 1
                log.warning("attempt %s cannot end as %s yet: %s", self._attempt, ending.outcome, error)
            except DatabaseUnavailable as error:
                log.warning("the end of attempt %s waits for the database: %s", self._attempt, error)
            # Results come from runners, so one may cause an error that no rule foresees.
            except Exception as error:  # noqa: BLE001  becomes the end of the attempt
                refusals += 1
                ending = AttemptEnd.from_error(error)
            await asyncio.sleep(backoff.next())

    def _backoff(self) -> Backoff:
        return Backoff(self._timing.retry_first, self._timing.retry_limit)
