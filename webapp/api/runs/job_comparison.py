"""Operations that compare jobs, experiments and model versions."""

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from pydantic import Field, StringConstraints

from jobs.answers.runs.job_comparison import ComparedCurvesOut, ComparisonOut
from jobs.errors import BadInput
from jobs.queries.runs.job_comparison.comparison import comparison_out, curve_sources
from jobs.queries.runs.job_comparison.curves import read_curves
from jobs.queries.runs.job_comparison.requested import MAX_SUBJECTS, VERSION, Requested, read_requested
from jobs.spec.problems import Problem
from jobs.spec.sections.measures import LONGEST_NAME
from webapp.api.auth import actor
from webapp.api.media import fast_json
from webapp.api.shapes import Id

router = Router()
VersionName = Annotated[str, StringConstraints(pattern=f"^{VERSION.pattern}$")]


class ComparisonFilter(Schema):
    """What to compare, at most 50 in all."""

    job: list[Id] = Field([], description="Ids of jobs.")
    experiment: list[Id] = Field([], description="Ids of experiments; of each its newest job is compared.")
    version: list[VersionName] = Field([], description="Versions as `model:number`.")


class CurvesFilter(ComparisonFilter):
    """What to compare, and the metric of the curves."""

    name: str = Field("val_loss", min_length=1, max_length=LONGEST_NAME, description="The metric.")


@router.get("/comparison", response=ComparisonOut)
def get_comparison(request: HttpRequest, filters: Query[ComparisonFilter]) -> ComparisonOut:
    """Return settings and metrics of jobs, experiments and versions side by side."""
    return comparison_out(actor(request), _requested(filters))


@router.get("/comparison/curves", response=ComparedCurvesOut)
def get_compared_curves(request: HttpRequest, filters: Query[CurvesFilter]) -> HttpResponse:
    """Return the learning curves of jobs, experiments and versions for one metric."""
    sources = curve_sources(actor(request), _requested(filters))
    return fast_json(ComparedCurvesOut(series=read_curves(sources, filters.name)))


def _requested(filters: ComparisonFilter) -> Requested:
    requested = read_requested(
        [str(pk) for pk in filters.job], [str(pk) for pk in filters.experiment], filters.version
    )
    if requested.left_out:
        count = MAX_SUBJECTS + requested.left_out
        raise BadInput(
            f"{count} are requested; at most {MAX_SUBJECTS} can be compared",
            [Problem("/job", f"at most {MAX_SUBJECTS} in all")],
        )
    return requested
