"""Reads and writes attempts in the database; implements `AttemptRepository` with the domain's actions."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import cast

from jobs.actions.code import package_sets, sandboxes
from jobs.actions.people import quotas
from jobs.actions.runs import attempt_end, attempts, fence, run_quotas, tasks
from jobs.actions.storage import checkpoint_copies
from jobs.messages.environments import InstalledSet, PackageChoice
from jobs.messages.events import RunnerEvent
from jobs.messages.sandbox import SandboxRecord
from jobs.messages.task import Task
from jobs.queries.runs import held_gpus
from jobs.queries.runs.gpus import reserved
from jobs.queries.search import learning_curves
from jobs.spec.sections.pruning import Curve
from jobs.states import Desired
from jobs.store import StoredFile, store
from workers.node.db_threads import CALL_TIMEOUT_SECONDS, DatabaseThread
from workers.supervise.attempt_end import AttemptEnd
from workers.supervise.attempt_repository import (
    Assignment,
    DatabaseUnavailable,
    ReservedGpus,
    StoredArtifact,
)


class DatabaseAttemptRepository:
    """The database as one worker's attempts see it.

    Renewals, claims, inputs and writes have a thread each: a slow write must not delay the renewal of a
    lease.
    """

    def __init__(self, holder: fence.Holder, *, renew_timeout: float) -> None:
        self._holder = holder
        self._renew_timeout = renew_timeout
        self._renewals, self._writes = DatabaseThread("renew"), DatabaseThread("write")
        self._claims, self._inputs = DatabaseThread("claim"), DatabaseThread("inputs")

    def close(self) -> None:
        """End the threads, after the calls that they have."""
        for thread in (self._renewals, self._writes, self._claims, self._inputs):
            thread.close()

    async def assigned(self) -> Sequence[Assignment]:
        return await self._claims.call(self._assignments, timeout=CALL_TIMEOUT_SECONDS)

    def _assignments(self) -> list[Assignment]:
        return [
            Assignment(
                attempt=row.pk,
                job=row.job_id,
                root=row.job.root_id_or_self,
                slots=row.slots,
                project=row.job.project_id,
                need=held_gpus.need_of(row.job),
            )
            for row in attempts.assigned_to(self._holder.worker)
        ]

    async def decline_assigned(self) -> None:
        await self._claims.call(
            lambda: attempt_end.decline_assigned(self._holder.worker, process=self._holder.process),
            timeout=self._renew_timeout,
        )

    async def claim(self, attempt: int) -> bool:
        worker, process = self._holder
        row = await self._claims.call(
            lambda: attempts.claim(attempt, worker_id=worker, process=process), timeout=CALL_TIMEOUT_SECONDS
        )
        return row is not None

    async def renew(self, attempt_ids: Sequence[int]) -> Mapping[int, Desired]:
        worker, process = self._holder
        return await self._renewals.call(
            lambda: attempts.renew(worker, attempt_ids, process=process), timeout=self._renew_timeout
        )

    async def task_for(self, attempt: int, *, folder: Path, threads: int) -> Task:
        # Without a timeout: it downloads the input files, which may be large.
        return await self._inputs.call(
            self._held(attempt, lambda: tasks.task_for(attempt, folder=folder, threads=threads)), timeout=None
        )

    async def reserved_gpus(self, attempt: int) -> ReservedGpus:
        found = await self._claims.call(
            self._held(attempt, lambda: reserved.gpus_of_attempt(attempt)), timeout=CALL_TIMEOUT_SECONDS
        )
        return ReservedGpus(found.kept, found.own)

    async def record_sandbox(self, attempt: int, record: SandboxRecord) -> None:
        await self._writes.call(
            self._held(attempt, lambda: sandboxes.record_sandbox(attempt, record)),
            timeout=CALL_TIMEOUT_SECONDS,
        )

    async def record_packages(
        self, attempt: int, installed: InstalledSet, choice: PackageChoice | None
    ) -> None:
        await self._writes.call(
            self._held(attempt, lambda: package_sets.record_packages(attempt, installed, choice)),
            timeout=CALL_TIMEOUT_SECONDS,
        )

    async def curves(self, search: int, *, known: Collection[int]) -> Mapping[int, Sequence[Curve]]:
        return await self._inputs.call(
            lambda: learning_curves.newly_ended_curves(search, known=known), timeout=CALL_TIMEOUT_SECONDS
        )

    async def store_file(self, attempt: int, path: Path) -> StoredArtifact:
        size = path.stat().st_size
        # An outage of the database stops no run, so the file is then stored without the check.
        with contextlib.suppress(DatabaseUnavailable):
            await self._claims.call(
                self._held(attempt, lambda: quotas.require_room_for_output(attempt, size)),
                timeout=CALL_TIMEOUT_SECONDS,
            )
        # Not in a database thread: copying a large file must not delay the writes of other attempts.
        return await asyncio.to_thread(lambda: store().put(path, size=size))

    async def share_events(self, attempt: int, rate: int) -> float | None:
        return await self._claims.call(
            self._held(attempt, lambda: run_quotas.share_events(attempt, rate)), timeout=CALL_TIMEOUT_SECONDS
        )

    async def require_within_disk(self, attempt: int, *, beside: int = 0) -> None:
        await self._claims.call(
            self._held(attempt, lambda: run_quotas.require_within_disk(attempt, beside=beside)),
            timeout=CALL_TIMEOUT_SECONDS,
        )

    async def record(
        self,
        attempt: int,
        events: Sequence[RunnerEvent],
        *,
        spool_position: int,
        stored: Mapping[str, StoredArtifact],
    ) -> None:
        # `store_file` returned them, so they are the store's own type.
        files = cast(Mapping[str, StoredFile], stored)
        await self._writes.call(
            lambda: attempts.record_events(
                attempt, events, spool_position=spool_position, stored=files, by=self._holder
            ),
            timeout=CALL_TIMEOUT_SECONDS,
        )

    async def copies_needed(self, attempt: int, folders: Collection[str]) -> Collection[str]:
        return await self._claims.call(
            self._held(attempt, lambda: checkpoint_copies.needed(attempt, folders)),
            timeout=CALL_TIMEOUT_SECONDS,
        )

    async def record_copy(self, attempt: int, folder: str) -> Sequence[str]:
        return await self._writes.call(
            self._held(attempt, lambda: checkpoint_copies.record(attempt, folder)),
            timeout=CALL_TIMEOUT_SECONDS,
        )

    async def finish(self, attempt: int, ending: AttemptEnd) -> None:
        await self._writes.call(
            lambda: attempt_end.finish(
                attempt, ending.outcome, error=ending.error, result=ending.result, by=self._holder
            ),
            timeout=CALL_TIMEOUT_SECONDS,
        )

    def _held[T](self, attempt: int, call: Callable[[], T]) -> Callable[[], T]:
        """Return the call with the check that the attempt is this process's: a database may be restored."""

        def checked() -> T:
            fence.require_held(attempt, self._holder)
            return call()

        return checked
