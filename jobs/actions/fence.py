"""The fence of what a runner says: one statement checks it, locks the attempt and moves its spool's position.

Written in SQL, as are the other statements that every commit of every running job needs: building such a
query from models takes twenty times as long as running it.
"""

from typing import Any

from django.db import connection
from django.db.models import Model

from jobs.errors import StaleFence
from jobs.models import Attempt, Job
from jobs.states import AttemptState

_ACKNOWLEDGE = """
    UPDATE jobs_attempt SET spool_acked = %s WHERE id = %s AND state = %s AND spool_acked < %s
    RETURNING id, job_id, number,
        (SELECT root_id FROM jobs_job WHERE jobs_job.id = jobs_attempt.job_id),
        (SELECT kind FROM jobs_job WHERE jobs_job.id = jobs_attempt.job_id)
"""


def acknowledge(attempt_id: int, spool_position: int) -> Attempt | None:
    """Note that the spool is written up to a position, inside the caller's transaction, which then writes it.

    Returns:
        The attempt, locked until commit, with its job; what is not needed to place its events is read when it
        is used. None when an earlier call, whose answer was lost, has written this already.

    Raises:
        StaleFence: the attempt is no longer running.
    """
    running = str(AttemptState.RUNNING)
    with connection.cursor() as cursor:
        cursor.execute(_ACKNOWLEDGE, [spool_position, attempt_id, running, spool_position])
        rows = cursor.fetchall()
    if not rows:
        if Attempt.objects.filter(pk=attempt_id, state=running).exists():
            return None
        raise StaleFence(f"attempt {attempt_id} is not running any more")
    pk, job_id, number, root_id, kind = rows[0]
    attempt = _partly(Attempt, id=pk, job_id=job_id, number=number)
    attempt.job = _partly(Job, id=job_id, root_id=root_id, kind=kind)
    return attempt


def _partly[M: Model](model: type[M], **known: Any) -> M:
    """Return a row of which some columns are known; the others are read when they are used."""
    names = [field.attname for field in model._meta.concrete_fields if field.attname in known]
    return model.from_db(connection.alias, names, [known[name] for name in names])
