"""What other runners' trials have reached meanwhile, for a runner whose trainings a pruner judges."""

import asyncio
import logging
from collections.abc import Callable

from jobs.contracts.control import Compare
from jobs.contracts.task import Task, TrialTask
from workers.supervise.ledger import Ledger, LedgerAway

log = logging.getLogger(__name__)


class News:
    """Made for one attempt. Tells each trial that has ended since its task was made once, and never its own.

    A hint: while the database is away the runner decides by what it knows, and the next attempt begins with
    everything.
    """

    def __init__(self, search: int, task: Task, ledger: Ledger, *, every: float) -> None:
        self._search = search
        self._ledger = ledger
        self._every = every
        self._known: set[int] = set()
        self._wanted = False
        if isinstance(task, TrialTask) and task.spec.search is not None:
            self._wanted = task.spec.search.pruner is not None
            self._known = {curve.trial for curve in task.curves} | {trial.number for trial in task.trials}

    async def follow(self, tell: Callable[[Compare], None]) -> None:
        """Look every so many seconds until cancelled; return at once where nothing is compared."""
        while self._wanted:
            await asyncio.sleep(self._every)
            try:
                new = await self._ledger.curves(self._search, known=frozenset(self._known))
            except LedgerAway as error:
                log.info("the pruner of search %s hears no news: %s", self._search, error)
                continue
            self._known |= new.keys()
            if curves := tuple(curve for trial in new.values() for curve in trial):
                tell(Compare(curves=curves))
