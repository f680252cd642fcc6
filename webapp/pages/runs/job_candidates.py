"""Builds the verdict on a job's page: the one model to serve, above the other candidates in one table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jobs.models import Job, ModelVersion
from jobs.queries.registry import versions
from jobs.queries.search import candidates, outcomes, recommendation, retrained_models
from jobs.queries.search.candidates import Candidate
from jobs.queries.search.recommendation import Recommendation
from jobs.queries.search.retrained_models import BestRetrained
from webapp.pages.shortcuts import Request
from webapp.template_context import Context


class Row(NamedTuple):
    """A candidate, with its versions and badges.

    Attributes:
        is_best_trial: whether it has the values of the search's best trial.
        is_doubted: whether a warning advises against its promotion.
    """

    model: Candidate
    versions: list[ModelVersion]
    is_recommended: bool
    is_best_trial: bool
    is_doubted: bool

    @property
    def label(self) -> str:
        """Return the name for the job that made it."""
        return self.model.label


@dataclass(frozen=True)
class JobCandidates(Context):
    """The recommended model, and every candidate, sorted by the objective.

    Attributes:
        deciding: the metric that sorts them.
        to_request: the versions that can be proposed for promotion.
    """

    candidates: list[Row]
    served: Row | None
    recommended: Recommendation | None
    best_single: BestRetrained | None
    is_best_doubted: bool
    deciding: str
    has_latency: bool
    to_request: list[ModelVersion]


def candidates_context(request: Request, row: Job) -> JobCandidates:
    """Return the verdict on a root job's models."""
    # A search's own metrics repeat its chosen candidate's; so do those of an ensemble of chosen trials.
    members = [*([row] if row.facts.evaluates else []), *row.children.evaluating()]
    by_job = versions.versions_by_job(request.user, [member.pk for member in members])
    recommended, best_single = recommendation.recommend_model(row), retrained_models.best_retrained(row)
    chosen = recommended.job.pk if recommended is not None and recommended.job is not None else None
    best_trial = _best_trial(row)
    rows = [
        Row(
            model=one,
            versions=by_job.get(one.job.pk, []),
            is_recommended=one.job.pk == chosen,
            is_best_trial=best_trial is not None and one.job.payload.repeated_trial() == best_trial,
            is_doubted=recommendation.is_doubted(one.job),
        )
        for one in candidates.candidates_of(row, members)
    ]
    advised = recommendation.advised_jobs(recommended, members)
    proposed = [version for job in advised for version in by_job.get(job.pk, [])]
    return JobCandidates(
        candidates=_recommended_first_of_equals(rows),
        served=next((one for one in rows if one.is_recommended), None),
        recommended=recommended,
        best_single=best_single,
        is_best_doubted=best_single is not None and recommendation.is_doubted(best_single.job),
        deciding=outcomes.objective_of(row).metric if rows else "",
        has_latency=any(one.model.latency for one in rows),
        to_request=versions.unrequested_candidates(proposed),
    )


def _best_trial(row: Job) -> int | None:
    best = outcomes.best_trials(row, limit=1).first() if row.facts.has_trials else None
    return best.number if best is not None else None


def _recommended_first_of_equals(rows: Sequence[Row]) -> list[Row]:
    """Return the rows in their order, with the recommended one first among those with its value."""
    values = [one.model.validation.value if one.model.validation is not None else None for one in rows]
    places = sorted(range(len(rows)), key=lambda at: (values.index(values[at]), not rows[at].is_recommended))
    return [rows[at] for at in places]
