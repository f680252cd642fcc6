"""Checks an attempt's fencing token, locks the attempt and stores its spool position, in one statement.

It is written in SQL, as are all other statements that every running job repeats at each commit: building such
a query from models takes twenty times as long as running it.
"""

import json
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Model

from jobs.errors import StaleFence
from jobs.models import Attempt, Job
from jobs.states import AttemptState

_ACKNOWLEDGE = """
    UPDATE jobs_attempt SET spool_acked = %s WHERE id = %s AND state = %s AND spool_acked < %s{held}
    RETURNING id, job_id, number, {phase},
        (SELECT root_id FROM jobs_job WHERE jobs_job.id = jobs_attempt.job_id),
        (SELECT kind FROM jobs_job WHERE jobs_job.id = jobs_attempt.job_id)
"""
_HELD = """
        AND worker_id = %s AND EXISTS
        (SELECT 1 FROM jobs_worker WHERE jobs_worker.id = jobs_attempt.worker_id AND process = %s)
"""
_PHASE = {"postgresql": "record -> 'phase'", "sqlite": "json_extract(record, '$.phase')"}
"""The expression for a value in the record's JSON, by database."""


class Holder(NamedTuple):
    """The process of a worker that holds attempts.

    A restored database gives ids of workers and attempts again. A worker that was cut off during the restore
    may return with ids that others have now; but none of them has its process's random number.
    """

    worker: int
    process: str


class Acknowledged(NamedTuple):
    """An attempt whose batch may be written, and the trial phase in its record, if there is one."""

    attempt: Attempt
    phase: dict[str, Any] | None


def require_held(attempt_id: int, by: Holder) -> None:
    """Require that an attempt was placed on this process.

    Raises:
        StaleFence: it was not, or a restored database does not know it.
    """
    held = Attempt.objects.filter(pk=attempt_id, worker_id=by.worker, worker__process=by.process)
    if not held.exists():
        raise StaleFence(f"attempt {attempt_id} is not held by this process of worker {by.worker}")


def acknowledge_batch(attempt_id: int, spool_position: int, by: Holder | None = None) -> Acknowledged | None:
    """Store a batch's spool position, inside the caller's transaction, which then writes the batch.

    Args:
        attempt_id: the attempt.
        spool_position: where the batch ends.
        by: who writes; None: not a worker.

    Returns:
        The attempt with its job, locked until commit. Columns that recording rarely needs are deferred, the
        record among them. None if an earlier call, whose answer was lost, has already written the batch.

    Raises:
        StaleFence: the attempt is no longer running, or not held.
    """
    running = str(AttemptState.RUNNING)
    with connection.cursor() as cursor:
        statement = _ACKNOWLEDGE.format(phase=_PHASE[connection.vendor], held="" if by is None else _HELD)
        cursor.execute(statement, [spool_position, attempt_id, running, spool_position, *(by or ())])
        rows = cursor.fetchall()
    if not rows:
        if by is not None:
            require_held(attempt_id, by)
        # The attempt has ended, or its spool position was already stored.
        if Attempt.objects.filter(pk=attempt_id, state=running).exists():
            return None
        raise StaleFence(f"attempt {attempt_id} is no longer running")
    # Built from the statement's own answer: reading both rows would take two further queries for each batch.
    pk, job_id, number, phase, root_id, kind = rows[0]
    attempt = _deferred_instance(Attempt, id=pk, job_id=job_id, number=number)
    attempt.job = _deferred_instance(Job, id=job_id, root_id=root_id, kind=kind)
    return Acknowledged(attempt, json.loads(phase) if phase else None)


def _deferred_instance[M: Model](model: type[M], **columns: Any) -> M:
    """Return an instance with the known columns; the others are deferred."""
    names = [field.attname for field in model._meta.concrete_fields if field.attname in columns]
    return model.from_db(connection.alias, names, [columns[name] for name in names])
