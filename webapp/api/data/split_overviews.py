"""Operations on split overviews for a data set version."""

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field, ValidationError

from jobs import access
from jobs.actions.data import split_overviews as actions
from jobs.answers.data.datasets import SplitOverviewOut
from jobs.errors import BadInput
from jobs.queries.data import split_overviews as queries
from jobs.spec.base import DocumentedAs
from jobs.spec.problems import problems
from jobs.spec.sections.data import Split
from webapp.api.auth import actor
from webapp.api.idempotency import idempotent

router = Router(by_alias=True)
PLACE = "/datasets/{slug}/versions/{number}/split-overview"


class SplitOverviewIn(Schema):
    """The split that is to be computed."""

    # Validated after the permission is checked.
    split: Annotated[Any, DocumentedAs(Split)] = Field(
        default_factory=dict, description="As `data.split` of a spec."
    )
    project: str | None = Field(
        default=None,
        description="The project in which the job runs, for bundled data; others have their own.",
    )


@router.get(PLACE, response=SplitOverviewOut)
def get_split_overview(
    request: HttpRequest, slug: str, number: int, split: Query[Split], project: str | None = None
) -> SplitOverviewOut:
    """Return the target in each part, and the rows that training knows, if they are computed."""
    user = actor(request)
    named = access.get_project(user, project) if project else None
    version = access.get_dataset_version(user, slug, number, named)
    home = version.dataset.project or named
    homes = [home] if home is not None else list(access.projects_of(user))
    return queries.overview_of_split(version, split, reader=user, homes=homes)


@router.post(PLACE, response={202: SplitOverviewOut})
@idempotent
def request_split_overview(
    request: HttpRequest, slug: str, number: int, body: SplitOverviewIn, project: str | None = None
) -> Status[SplitOverviewOut]:
    """Have a worker compare a split's parts, unless it has done so."""
    user = actor(request)
    named = access.get_project(user, body.project) if body.project else None
    place = access.get_project(user, project) if project else named
    version = access.get_dataset_version(user, slug, number, place)
    if (home := version.dataset.project or named) is not None:
        access.require(user, home, access.Action.WRITE)
    split = _read_split(body.split)
    actions.request_overview(version, split, by=user, project=home)
    homes = [home] if home is not None else []
    return Status(202, queries.overview_of_split(version, split, reader=user, homes=homes))


def _read_split(sent: Any) -> Split:
    try:
        return Split.model_validate(sent)
    except ValidationError as error:
        invalid = problems(error, sent, "/split")
        raise BadInput(invalid[0].message, invalid) from error
