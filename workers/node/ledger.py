"""The ledger of supervision, written with the actions."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import cast

from jobs.actions import attempt_end, attempts, tasks
from jobs.contracts.events import RunnerEvent
from jobs.contracts.pruning import Curve
from jobs.contracts.task import Task
from jobs.models import Attempt
from jobs.queries import curves
from jobs.states import Desired
from jobs.store import StoredFile, store
from workers.node.db_threads import Lane
from workers.supervise.endings import Ending
from workers.supervise.ledger import Assignment, Stored

PATIENCE = 30.0
"""Above the busy timeout of SQLite: a call that takes longer hangs on a connection that died silently."""


class DatabaseLedger:
    """See `workers.supervise.ledger.Ledger`. Renewals have a lane of their own: nothing may delay them."""

    def __init__(self, worker_id: int, *, renew_patience: float) -> None:
        self._worker_id = worker_id
        self._renew_patience = renew_patience
        self._renewals, self._writes = Lane("renew"), Lane("write")
        self._claims, self._inputs = Lane("claim"), Lane("inputs")

    async def assigned(self) -> Sequence[Assignment]:
        """See `Ledger.assigned`."""
        rows = await self._claims.call(lambda: attempts.assigned_to(self._worker_id), patience=PATIENCE)
        return [_assignment(row) for row in rows]

    async def claim(self, attempt: int) -> bool:
        """See `Ledger.claim`."""
        row = await self._claims.call(
            lambda: attempts.claim(attempt, worker_id=self._worker_id), patience=PATIENCE
        )
        return row is not None

    async def renew(self, attempt_ids: Sequence[int]) -> Mapping[int, Desired]:
        """See `Ledger.renew`."""
        return await self._renewals.call(
            lambda: attempts.renew(self._worker_id, attempt_ids), patience=self._renew_patience
        )

    async def task_for(self, attempt: int, *, folder: Path, threads: int) -> Task:
        """See `Ledger.task_for`."""
        return await self._inputs.call(lambda: tasks.task_for(attempt, folder=folder, threads=threads))

    async def curves(self, search: int, *, known: Collection[int]) -> Mapping[int, Sequence[Curve]]:
        """See `Ledger.curves`."""
        return await self._inputs.call(lambda: curves.since(search, known=known), patience=PATIENCE)

    async def keep(self, path: Path) -> Stored:
        """See `Ledger.keep`."""
        return await asyncio.to_thread(lambda: store().put(path))

    async def record(
        self,
        attempt: int,
        events: Sequence[RunnerEvent],
        *,
        spool_position: int,
        stored: Mapping[str, Stored],
    ) -> None:
        """See `Ledger.record`."""
        files = cast(Mapping[str, StoredFile], stored)
        await self._writes.call(
            lambda: attempts.record(attempt, events, spool_position=spool_position, stored=files),
            patience=PATIENCE,
        )

    async def finish(self, attempt: int, ending: Ending) -> None:
        """See `Ledger.finish`."""
        await self._writes.call(
            lambda: attempt_end.finish(attempt, ending.outcome, error=ending.error, result=ending.result),
            patience=PATIENCE,
        )


def _assignment(row: Attempt) -> Assignment:
    return Assignment(
        attempt=row.pk,
        job=row.job_id,
        root=row.job.root_id_or_self,
        slots=row.slots,
        project=row.job.project_id,
    )
