"""Operations on precision: the dtype policies, and dry runs that compare one with float32."""

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from jobs import access
from jobs.actions.experiments.dry_runs import request_dry_run
from jobs.answers.experiments.experiments import Spec
from jobs.answers.experiments.precision import DryRunOut, PoliciesOut
from jobs.messages.reports.precision_comparison import DEFAULT_STEPS, MOST_STEPS
from jobs.queries.experiments import dry_runs
from jobs.queries.experiments.precision import policies_out
from webapp.api.auth import actor
from webapp.api.idempotency import idempotent
from webapp.api.shapes import In

router = Router()


class PolicyFilter(Schema):
    """The workers and the project that the answer is about."""

    pool: str = Field("", max_length=100, description="Whose devices are described; empty: all pools.")
    project: str | None = Field(None, description="Whose dry runs give the measured gains.")


class DryRunIn(In):
    """The experiment whose precision is compared, and how long."""

    project: str
    spec: Spec
    steps: int = Field(DEFAULT_STEPS, ge=1, le=MOST_STEPS, description="Training steps with each precision.")
    again: bool = Field(False, description="Whether to repeat a dry run that has failed.")


@router.get("/precision", response=PoliciesOut)
def list_policies(request: HttpRequest, filters: Query[PolicyFilter]) -> PoliciesOut:
    """List the dtype policies with their formats, their use and the devices that accelerate them."""
    project = access.get_project(actor(request), filters.project) if filters.project else None
    return policies_out(project, filters.pool)


@router.post("/experiments/dry-run", response={202: DryRunOut})
@idempotent
def compare_precision(request: HttpRequest, body: DryRunIn) -> Status[DryRunOut]:
    """Have a worker train some steps in float32 and with the spec's precision; return the findings so far.

    The same request returns the state and then the result. The steps run on one device of a worker in the
    spec's pool with its labels, without the search, the mesh and the steps afterwards.
    """
    user = actor(request)
    project = access.get_project(user, body.project, access.Action.WRITE)
    wanted = request_dry_run(project, body.spec, body.steps, by=user, again=body.again)
    return Status(202, dry_runs.dry_run_out(wanted))
