"""Operations on the packages of code: environments, installing ahead of runs, choosing versions again."""

from typing import Literal

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import Field

from jobs import access
from jobs.access import Action
from jobs.actions.code import package_installs, package_sets
from jobs.answers.code.environments import EnvironmentsOut
from jobs.answers.runs.jobs import JobOut
from jobs.models import CodeVersion
from jobs.queries.code import environments as queries
from jobs.queries.runs import jobs as job_queries
from webapp.api.auth import actor
from webapp.api.idempotency import idempotent
from webapp.api.shapes import In

router = Router(by_alias=True)


class InstallIn(In):
    """The use of the packages, and the pool whose worker installs them."""

    use: Literal["models", "scripts"] | None = Field(
        None,
        description="Models keep the versions that Trainyard runs with; by default those that the code has.",
    )
    pool: str = Field("default", max_length=63, description="One worker of this pool installs them.")
    project: str | None = Field(None, description="Of the code, if several projects have it.")


class ResolveIn(In):
    """The project of the code."""

    project: str | None = Field(None, description="Of the code, if several projects have it.")


@router.get("/code/{code}/environment", response=EnvironmentsOut)
def get_code_environment(request: HttpRequest, code: str, project: str | None = None) -> EnvironmentsOut:
    """Return where the packages of a version are installed, and the output of each installation."""
    return queries.environments_out(_version(request, code, project, Action.VIEW))


@router.post("/code/{code}/environment", response={202: JobOut})
@idempotent
def install_packages(request: HttpRequest, code: str, body: InstallIn) -> Status[JobOut]:
    """Let a worker install the packages of a version before a run needs them, and return the job.

    While a job for the same packages is open, it is returned. Runs that need the packages wait for it.
    """
    version = _version(request, code, body.project)
    job = package_installs.request_installation(
        version, use=body.use or "", pool=body.pool, by=actor(request)
    )
    return Status(202, job_queries.job_out(job))


@router.post("/code/{code}/environment/resolve", response=EnvironmentsOut)
@idempotent
def resolve_packages(request: HttpRequest, code: str, body: ResolveIn) -> EnvironmentsOut:
    """Have the versions of the packages chosen again by the next run or installation that needs them.

    Without this, all runs get the versions of the first installation. Versions of models keep theirs.
    """
    version = _version(request, code, body.project)
    package_sets.resolve_again(version, by=actor(request))
    return queries.environments_out(version)


def _version(
    request: HttpRequest, code: str, project: str | None, right: Action = Action.RUN_CODE
) -> CodeVersion:
    user = actor(request)
    home = access.get_project(user, project) if project else None
    return access.get_code(user, code, home, right)
