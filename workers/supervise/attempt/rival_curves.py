"""Sends a runner the learning curves from trials that ended on other runners, for its pruner."""

import asyncio
import logging
from collections.abc import Callable

from jobs.messages.control import Compare
from jobs.messages.task import Task
from jobs.messages.training import TrialTask
from workers.supervise.attempt_repository import AttemptRepository, DatabaseUnavailable

log = logging.getLogger(__name__)


class RivalCurveSender:
    """Sends one attempt the curves from trials that end after its task was built, each trial once.

    A failure is not repeated: while the database is unavailable, the runner prunes by the curves that it has.
    The next attempt's task contains them all.

    Args:
        search: the search's job id.
        task: the attempt's.
        repository: reads the curves.
        interval: seconds between two queries.
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
            # First: the task contains the curves up to its start.
            await asyncio.sleep(self._interval)
            try:
                new = await self._repository.curves(self._search, known=frozenset(self._known))
            except DatabaseUnavailable as error:
                log.info("the pruner of search %s got no new curves: %s", self._search, error)
                continue
            # Also trials without curves, so that they are not queried again.
            self._known |= new.keys()
            if curves := tuple(curve for trial in new.values() for curve in trial):
                send(Compare(curves=curves))
