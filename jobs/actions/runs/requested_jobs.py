"""Queues the jobs of requests that are answered once."""

from typing import Any

from django.db import transaction

from jobs.actions.audit import audit
from jobs.actions.people import quotas
from jobs.actions.runs import submit
from jobs.models import User
from jobs.queries.requested_jobs import JobRequest, has_answer


def queue_once(
    request: JobRequest,
    *,
    by: User,
    again: bool,
    priority: int,
    audited_as: str,
    details: dict[str, Any],
    **placement: Any,
) -> None:
    """Queue the job of a request, unless an equal one has been completed or is open.

    Args:
        request: the acting user may make it.
        by: the acting user.
        again: whether to repeat a job that has failed.
        priority: the job's.
        audited_as: the action in the audit log.
        details: the fields of its row there.
        placement: further fields of the job, such as its pool.

    Raises:
        QuotaReached: the project has too many unfinished jobs.
    """
    if has_answer(request, again=again):
        return
    project = request.project
    with transaction.atomic():
        # Locked, so that the second of two simultaneous requests finds the first one's job.
        quotas.lock_project(project)
        if has_answer(request, again=again):
            return
        quotas.require_room_for_job(project)
        job = submit.queue(
            request.payload,
            project=project,
            title=request.title,
            priority=priority,
            max_restarts=1,
            created_by=by,
            **placement,
        )
        audit.record(audited_as, f"job:{job.pk}", by=by, project=project, **details)
