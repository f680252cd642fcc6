"""Records environments with code's packages in the database, from the threads that build them."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from jobs.actions.code import environments as actions
from jobs.messages.environments import EnvironmentFacts, EnvironmentFailure, EnvironmentKey
from workers.confinement.environments.environments import Environments, limit_bytes
from workers.confinement.environments.folder import EnvironmentFolder
from workers.node.db_threads import DatabaseThread
from workers.supervise.attempt_repository import DatabaseUnavailable

log = logging.getLogger(__name__)


class EnvironmentRecords:
    """A node's recorder: its calls reach the database in order, and are lost in an outage.

    Args:
        folder: the folder with environments.
        database: the thread for the calls.
    """

    def __init__(self, folder: EnvironmentFolder, database: DatabaseThread) -> None:
        self.worker_id: int | None = None
        self._place = folder.place()
        self._builds: dict[str, int] = {}
        self._database = database
        self._loop = asyncio.get_running_loop()

    @property
    def place(self) -> str:
        """The folder's identity."""
        return self._place

    def building(self, key: EnvironmentKey) -> None:
        if (worker := self.worker_id) is not None:
            # The node may have another id at the end of the build.
            self._builds[key.digest] = worker
            self._send(partial(actions.record_build, self._place, key, worker=worker))

    def ready(self, facts: EnvironmentFacts, text: str) -> None:
        self._builds.pop(facts.digest, None)
        self._send(partial(actions.record_built, self._place, facts, text))

    def failed(self, key: EnvironmentKey, failure: EnvironmentFailure | None, text: str) -> None:
        if (worker := self._builds.pop(key.digest, None)) is not None:
            self._send(partial(actions.record_failure, self._place, key, failure, text, worker=worker))

    def _send(self, call: Callable[[], None]) -> None:
        asyncio.run_coroutine_threadsafe(self._call(call), self._loop)

    async def _call(self, call: Callable[[], None]) -> None:
        try:
            await self._database.call(call)
        except DatabaseUnavailable as error:
            log.warning("the state of an environment was not recorded: %s", error)

    async def keep_house(self, environments: Environments) -> None:
        """Remove the longest unused environments above the limit, and record those that remain.

        Raises:
            DatabaseUnavailable: it is recorded the next time.
        """
        for digest in await asyncio.to_thread(environments.evict, limit_bytes()):
            log.info("removed the packages %s, which were unused for the longest time", digest[:12])
        times = await asyncio.to_thread(environments.folder.used)
        await self._database.call(partial(actions.record_use, self._place, times))
        for build in await self._database.call(partial(actions.unfinished_builds, self._place)):
            if await asyncio.to_thread(environments.folder.is_idle, build.digest):
                await self._database.call(partial(actions.record_interruption, self._place, build))
