"""Sends the scores of trials that ended on other runners to a runner whose pruner compares with them."""

import asyncio
import logging
from collections.abc import Callable

from jobs.contracts.control import Compare
from jobs.contracts.task_parts import Task
from jobs.kinds.search.payload import TrialTask
from workers.supervise.attempt_repository import AttemptRepository, DatabaseUnavailable

log = logging.getLogger(__name__)


class RivalScores:
    """For one attempt: sends each trial that ends after the task was built once, and none of the task's own.

    Best effort: while the database is unavailable the runner prunes by the scores it has. The next attempt's
    task contains all of them.
    """

    def __init__(self, search: int, task: Task, repository: AttemptRepository, *, interval: float) -> None:
        self._search = search
        self._repository = repository
        self._interval = interval
        self._known: set[int] = set()
        self._needed = False
        if isinstance(task, TrialTask) and task.spec.search is not None:
            self._needed = task.spec.search.pruner is not None
            self._known = {curve.trial for curve in task.curves} | {trial.number for trial in task.trials}

    async def run(self, send: Callable[[Compare], None]) -> None:
        """Query the database every interval until cancelled; return at once if the search has no pruner."""
        while self._needed:
            await asyncio.sleep(self._interval)
            try:
                new = await self._repository.curves(self._search, known=frozenset(self._known))
            except DatabaseUnavailable as error:
                log.info("the pruner of search %s got no new scores: %s", self._search, error)
                continue
            self._known |= new.keys()
            if curves := tuple(curve for trial in new.values() for curve in trial):
                send(Compare(curves=curves))
