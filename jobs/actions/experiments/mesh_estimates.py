"""Requests estimates for meshes, which workers make."""

from jobs import access
from jobs.actions.runs import requested_jobs
from jobs.models import User
from jobs.queries.experiments.mesh_estimates import EstimateRequest

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
    payload = request.payload
    action = access.Action.WRITE if payload.code_digest() is None else access.Action.RUN_CODE
    access.require(by, request.project, action)
    requested_jobs.queue_once(
        request,
        by=by,
        again=again,
        priority=PRIORITY_OF_COMPILING if payload.compiles else PRIORITY,
        audited_as="experiment.mesh_estimate",
        details={"key": payload.key},
    )
