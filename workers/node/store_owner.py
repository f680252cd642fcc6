"""Finds out whether this worker may change the artifact store."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from jobs.queries.storage import ownership
from workers.node.db_threads import DatabaseThread

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 20.0


class StoreOwner:
    """Asks the database and the store, and keeps the last answer.

    The store has a thread of its own: one that does not answer must delay nothing else. There is at most one
    request to it at a time, so that an outage leaves no threads behind.

    Args:
        database: asks the database.
        patience: how long an answer of the store is awaited, in seconds.
    """

    def __init__(self, database: DatabaseThread, *, patience: float = PATIENCE_SECONDS) -> None:
        self.problem: str | None = None
        """Why the store must not be changed, in sentences; None if it may be."""
        self._database = database
        self._patience = patience
        self._thread = ThreadPoolExecutor(1, "store-owner")
        self._asked: asyncio.Future[ownership.StoreMark] | None = None

    async def ask(self) -> None:
        """Ask again. While the store does not answer, the last answer holds.

        Raises:
            DatabaseUnavailable: the last answer holds, too.
        """
        own = await self._database.call(ownership.identity)
        if self._asked is None:
            read = partial(ownership.read_mark, is_copy=own.is_copy)
            self._asked = asyncio.get_running_loop().run_in_executor(self._thread, read)
        # Not cancelled: the next call waits for the same answer.
        await asyncio.wait([self._asked], timeout=self._patience)
        if not self._asked.done():
            log.warning("the artifact store did not answer whose it is within %.0f s", self._patience)
            return
        asked, self._asked = self._asked, None
        try:
            self.problem = ownership.problem_between(own, asked.result())
        except OSError as error:
            log.warning("it is not known whose the artifact store is: %s", error)

    def close(self) -> None:
        """Let the thread end after its request."""
        self._thread.shutdown(wait=False, cancel_futures=True)
