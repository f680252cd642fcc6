"""Requests estimates for meshes, which workers make."""

from django.db import transaction

from jobs import access
from jobs.actions.audit import audit
from jobs.actions.people import quotas
from jobs.actions.runs import submit
from jobs.models import User
from jobs.queries.experiments.mesh_estimates import EstimateRequest
from jobs.states import FINAL, JobState

PRIORITY = 80
"""A person waits for the result, as for a dry build."""
PRIORITY_OF_COMPILING = 60
"""It takes minutes, and a training may be started meanwhile."""


def request_estimate(request: EstimateRequest, *, by: User, again: bool = False) -> None:
    """Queue an estimate, unless one has been completed or is open.

    Args:
        request: the model and the mesh.
        by: the acting user.
        again: whether to repeat one that has failed.

    Raises:
        Forbidden: `by` may not run jobs in the project, or not its code.
        QuotaReached: the project has too many unfinished jobs.
    """
    project, payload = request.project, request.payload
    action = access.Action.WRITE if payload.code_digest() is None else access.Action.RUN_CODE
    access.require(by, project, action)
    if _is_known(request, again=again):
        return
    with transaction.atomic():
        # Locked, so that the second of two simultaneous requests finds the first one's job.
        quotas.lock_project(project)
        if _is_known(request, again=again):
            return
        quotas.require_room_for_job(project)
        job = submit.queue(
            payload,
            project=project,
            title=request.title,
            priority=PRIORITY_OF_COMPILING if payload.compiles else PRIORITY,
            max_restarts=1,
            created_by=by,
        )
        audit.record("experiment.mesh_estimate", f"job:{job.pk}", by=by, project=project, key=payload.key)


def _is_known(request: EstimateRequest, *, again: bool) -> bool:
    """Return whether an estimate has been completed or is open, or has failed and must not be repeated."""
    rows = request.jobs
    if rows.filter(state=JobState.COMPLETED).exists() or rows.exclude(state__in=FINAL).exists():
        return True
    return not again and rows.exists()
