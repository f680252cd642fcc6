"""Operations on estimates for meshes: a worker compiles a training step before a device is taken."""

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import Field

from jobs import access
from jobs.access import Action
from jobs.actions.experiments import mesh_estimates as actions
from jobs.answers.experiments.experiments import Spec
from jobs.answers.experiments.mesh_estimates import MeshEstimateOut
from jobs.queries.experiments import estimate_requests
from jobs.queries.experiments import mesh_estimates as queries
from jobs.spec.data.file_limits import GIB
from webapp.api.auth import actor
from webapp.api.idempotency import idempotent
from webapp.api.shapes import Id, In

router = Router(by_alias=True)


class MeshEstimateIn(In):
    """The experiment whose training step is estimated on its mesh."""

    project: str
    spec: Spec
    compile_step: bool = Field(
        True,
        alias="compile",
        description="False: only list the variables, which takes seconds instead of minutes.",
    )
    device_gib: float | None = Field(
        None,
        gt=0,
        le=10_000,
        description="The memory of one device, for the largest batch that fits; null: that of the smallest "
        "GPU or TPU of the mesh that a live worker reports.",
    )
    again: bool = Field(False, description="Whether to repeat an estimate that has failed.")


@router.post("/experiments/mesh-estimates", response={202: MeshEstimateOut})
@idempotent
def request_mesh_estimate(request: HttpRequest, body: MeshEstimateIn) -> Status[MeshEstimateOut]:
    """Have a worker estimate the training step of a spec on its mesh, and return the findings so far.

    The worker builds the model without values and compiles its step for simulated CPU devices. The same
    request returns the state and then the result: each is estimated once.
    """
    user = actor(request)
    project = access.get_project(user, body.project, Action.WRITE)
    size = None if body.device_gib is None else round(body.device_gib * GIB)
    estimate = estimate_requests.read_request(
        project, body.spec, by=user, compiles=body.compile_step, device_bytes=size
    )
    actions.request_estimate(estimate, by=user, again=body.again)
    return Status(202, queries.estimate_out(estimate))


@router.get("/experiments/mesh-estimates/{job_id}", response=MeshEstimateOut)
def get_mesh_estimate(request: HttpRequest, job_id: Id) -> MeshEstimateOut:
    """Return the estimate that a job makes or has made."""
    return queries.estimate_of_job(queries.find_estimate(access.visible_jobs(actor(request)), job_id))
