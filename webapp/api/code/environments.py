"""Operations on the code's packages: environments, installing ahead of runs, choosing versions again."""

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
    """How the packages are used, and the pool whose worker installs them."""

    use: Literal["models", "scripts"] | None = Field(
        None,
        description="Models keep the versions that Trainyard runs with; by default those that the code has.",
    )
    pool: str = Field("default", max_length=63, description="One worker of this pool installs them.")
    project: str | None = Field(None, description="Of the code, if several projects have it.")


class ResolveIn(In):
    """The code's project."""

    project: str | None = Field(None, description="Of the code, if several projects have it.")


@router.get("/code/{code}/environment", response=EnvironmentsOut)
def get_code_environment(request: HttpRequest, code: str, project: str | None = None) -> EnvironmentsOut:
    """Return where a version's packages are installed, and each installation's output."""
    return queries.environments_out(_find_version(request, code, project, Action.VIEW))


@router.post("/code/{code}/environment", response={202: JobOut})
@idempotent
def install_packages(request: HttpRequest, code: str, body: InstallIn) -> Status[JobOut]:
    """Have a worker install a version's packages before a run needs them, and return the job.

    While a job for the same packages is open, it is returned. Runs that need the packages wait for it.
    """
    version = _find_version(request, code, body.project)
    job = package_installs.request_installation(
        version, use=body.use or "", pool=body.pool, by=actor(request)
    )
    return Status(202, job_queries.job_out(job))


@router.post("/code/{code}/environment/resolve", response=EnvironmentsOut)
@idempotent
def resolve_packages(request: HttpRequest, code: str, body: ResolveIn) -> EnvironmentsOut:
    """Have the package versions chosen again by the next run or installation that needs them.

    Without this, all runs get the versions from the first installation. Model versions keep theirs.
    """
    version = _find_version(request, code, body.project)
    package_sets.resolve_again(version, by=actor(request))
    return queries.environments_out(version)


def _find_version(
    request: HttpRequest, code: str, project: str | None, right: Action = Action.RUN_CODE
) -> CodeVersion:
    user = actor(request)
    home = access.get_project(user, project) if project else None
    return access.get_code(user, code, home, right)
