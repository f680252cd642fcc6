"""Builds the overview tab on a job's page: candidates, the best trial, and a search's answer."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.utils.module_loading import import_string

from jobs.answers.runs.shardings import ShardingsOut
from jobs.answers.search.search_results import (
    AnswerOut,
    BaselineOut,
    ImportanceOut,
    RankedTrialOut,
    TemplateResultOut,
)
from jobs.kinds.base import ChosenTrials
from jobs.messages.analysis import ImportanceAnswer
from jobs.models import Job, ModelVersion, Trial
from jobs.queries.code import dry_builds, sandboxes
from jobs.queries.data import datasets
from jobs.queries.registry import registry, versions
from jobs.queries.runs import evaluations, model_reports
from jobs.queries.runs.model_reports import StoredReport
from jobs.queries.runs.shardings import shardings_of
from jobs.queries.search import (
    answer,
    baseline,
    outcomes,
    recommendation,
    retrained_models,
    retraining,
    templates_tried,
)
from jobs.queries.search.recommendation import Recommendation
from jobs.queries.search.retrained_models import BestRetrained
from jobs.queries.search.retraining import ChosenEpoch
from jobs.spec.sections.script_model import MODEL_FILE
from webapp import analysis
from webapp.pages.search.importance import Tendency, describe_tendency
from webapp.pages.search.verdict import Verdict, verdict_on_lead
from webapp.pages.shortcuts import Request
from webapp.template_context import Context

MOST_BARS = 5
"""The number of hyperparameters that the answer lists by importance; the chart shows all."""


class BestModel(NamedTuple):
    """The model that a step made from the best trial: the job, its artifact and its versions."""

    job: Job
    digest: str
    versions: list[ModelVersion]


class Again(NamedTuple):
    """The buttons that train with the best trial's values: a label and two tips."""

    label: str
    tip: str
    register_tip: str


TRAINED_AGAIN = Again(
    "Retrain",
    "Trains these values again on training and validation rows, as a job of its own.",
    "Retrains these values and registers the model as a version.",
)
WEIGHTS_AGAIN = Again(
    "Retrain for the weights",
    "Trains these values again, as a job of its own. It ends as failed, and keeps the trained weights.",
    "",
)
SCRIPT_AGAIN = Again(
    "Run as a job",
    "Runs the script once more with these values, as a job of its own.",
    f"Runs the script once more with these values, and registers its {MODEL_FILE} as a version.",
)


def runs_script(row: Job) -> bool:
    """Return whether a job runs a script, which has no checkpoints."""
    return row.revision is not None and row.revision.spec.model.info.trains_itself


def buttons_to_train(row: Job, unsaved: str) -> Again:
    """Return the buttons that train a trial's values again; `unsaved` is why its model cannot be saved."""
    return SCRIPT_AGAIN if runs_script(row) else WEIGHTS_AGAIN if unsaved else TRAINED_AGAIN


@dataclass(frozen=True)
class JobOverview(Context):
    """A job's results: metrics, models, packages and reports."""

    by_code: bool
    candidates: list[dict[str, Any]]
    sorted_by: str
    has_versions: bool
    to_request: list[ModelVersion]
    validated: ModelVersion | None
    best_single: BestRetrained | None
    is_best_doubted: bool
    recommended: Recommendation | None
    details: object
    chosen: ChosenTrials | None
    hyperparameters: dict[str, bool | int | float | str]
    weighted_by: str
    training: retraining.TrainingResult | None
    reported: dict[str, Any]
    command: str
    findings: list[tuple[StoredReport, str]]
    chosen_epoch: ChosenEpoch | None
    shardings: ShardingsOut | None


def overview_contexts(request: Request, row: Job) -> tuple[Context, ...]:
    """Return the variables for the overview tab."""
    overview = _job_overview(request, row)
    return (overview, *_search_contexts(request, row)) if row.facts.has_trials else (overview,)


def _job_overview(request: Request, row: Job) -> JobOverview:
    # A search's own metrics repeat its chosen candidate's; so do those of an ensemble of chosen trials.
    evaluated_job = [row] if row.facts.evaluates else []
    members = [*evaluated_job, *row.children.evaluating()]
    summaries = [entry for member in members if (entry := evaluations.summarize_candidate(member))]
    sorted_by = evaluations.deciding_metric(summaries, outcomes.objective_of(row).metric)
    candidates = evaluations.best_first(summaries, sorted_by) if sorted_by else summaries
    by_job = versions.versions_by_job(request.user, [member.pk for member in members])
    registered = [version for job_versions in by_job.values() for version in job_versions]
    recommended, best_single = recommendation.recommend_model(row), retrained_models.best_retrained(row)
    advised = recommendation.advised_jobs(recommended, members)
    proposed = [version for job in advised for version in by_job.get(job.pk, [])]
    return JobOverview(
        by_code=versions.measured_by_code(row),
        sorted_by=sorted_by,
        candidates=[entry | {"versions": by_job.get(entry["job"].pk, [])} for entry in candidates],
        has_versions=bool(registered),
        to_request=versions.unrequested_candidates(proposed),
        validated=versions.validated_version(request.user, row),
        best_single=best_single,
        is_best_doubted=best_single is not None and recommendation.is_doubted(best_single.job),
        recommended=recommended,
        details=_details(row),
        chosen=row.payload.chosen_trials(),
        hyperparameters=row.payload.hyperparameters(),
        weighted_by=datasets.weight_column(row),
        training=None if runs_script(row) else retraining.training_result(row),
        reported=row.results.metrics.get("reported", {}),
        command=shlex.join(getattr(row.results, "command", ())),
        findings=model_reports.report_findings(model_reports.reports_of_job(row, ("report",))),
        chosen_epoch=retraining.chosen_epoch(row),
        shardings=shardings_of(row) if _has_mesh(row) else None,
    )


def _has_mesh(row: Job) -> bool:
    return row.revision is not None and row.revision.spec.mesh is not None


def _details(row: Job) -> object:
    """Return the content of the section that only jobs of this kind have, or None."""
    return import_string(row.facts.details)(row) if row.facts.details else None


@dataclass(frozen=True)
class SearchAnswer(Context):
    """A search's best trial, and its answer once the search is over."""

    answer: AnswerOut | None
    templates_tried: list[TemplateResultOut]
    ranked: RankedTrialOut | None
    tied: list[int]
    baseline: BaselineOut | None = None
    verdict: Verdict | None = None
    importance: ImportanceOut | None = None
    bars: Sequence[tuple[str, float, bool, Tendency]] = ()
    widens: Sequence[str] = ()

    @property
    def is_useful(self) -> bool:
        """Whether the best trial is not known to be as bad as a constant prediction."""
        return self.baseline is None or self.baseline.beaten


def _search_contexts(request: Request, row: Job) -> tuple[Context, ...]:
    search_answer = answer.answer_of_search(row) if answer.is_over(row) else None
    may_run = sandboxes.may_run(request.user, row)
    if search_answer is None or search_answer.best is None:
        best = outcomes.best_trials(row, limit=1).prefetch_related("executions").first()
        ranked = answer.ranked_trial_out(best) if best is not None else None
        tried = templates_tried.template_results(row)
        preliminary = SearchAnswer(
            answer=None,
            templates_tried=tried,
            ranked=ranked,
            tied=_tied_trials(row, ranked),
            baseline=_baseline_out(row, best),
        )
        return (preliminary, *_next_steps(request, row, ranked, preliminary.is_useful, may_run=may_run))
    importance = analysis.importance_of(row)
    # Stored as JSON, and not read into its class by the query.
    result = importance.result and ImportanceAnswer.model_validate(importance.result)
    final = SearchAnswer(
        answer=search_answer,
        templates_tried=search_answer.templates,
        ranked=search_answer.best,
        tied=_tied_trials(row, search_answer.best),
        baseline=search_answer.baseline,
        verdict=verdict_on_lead(search_answer),
        importance=importance,
        bars=_importance_bars(result) if result else [],
        widens=[name for name in search_answer.at_edge if name not in search_answer.at_declared_edge],
    )
    return (final, *_next_steps(request, row, search_answer.best, final.is_useful, may_run=may_run))


def _baseline_out(row: Job, best: Trial | None) -> BaselineOut | None:
    compared = baseline.compare_with_constant(row, best)
    return answer.baseline_out(compared) if compared is not None else None


def _tied_trials(row: Job, best: RankedTrialOut | None) -> list[int]:
    return outcomes.trials_tied_with(row, best.number) if best is not None else []


@dataclass(frozen=True)
class NextSteps(Context):
    """The model that was made from the best trial, and whether it can be made now.

    Attributes:
        unsaved: why the model cannot be saved, so that no version can be made of it; empty if it can.
    """

    best_model: BestModel | None = None
    to_register: BestModel | None = None
    may_train: bool = False
    again: Again | None = None
    unsaved: str = ""


@dataclass(frozen=True)
class RegistrationChoice(Context):
    """The name under which this job's model is registered, and the project's model names."""

    register_as: str = ""
    model_names: Sequence[str] = ()


def _next_steps(
    request: Request, row: Job, best: RankedTrialOut | None, is_useful: bool, *, may_run: bool
) -> tuple[NextSteps, RegistrationChoice]:
    if best is None:
        return NextSteps(), RegistrationChoice()
    training = retrained_models.retrained_step(row, best.number)
    best_model = _model_of(request, training) if training is not None else None
    to_register = _model_to_register(request, row, best_model) if is_useful else None
    may_train = may_run and row.experiment_id is not None
    unsaved = dry_builds.why_unsaved(row)
    can_register = may_train and not unsaved and (best_model is None or to_register is not None)
    return (
        NextSteps(best_model, to_register, may_train, buttons_to_train(row, unsaved), unsaved),
        registration_context(row) if can_register else RegistrationChoice(),
    )


def _model_of(request: Request, job: Job) -> BestModel:
    digest = retrained_models.model_digest(job)
    registered = versions.versions_by_artifact(request.user, [digest]).get(digest, []) if digest else []
    return BestModel(job, digest, registered)


def _model_to_register(request: Request, row: Job, best_model: BestModel | None) -> BestModel | None:
    """Return the unregistered model that the answer offers: the recommended one, if it is known."""
    candidates = [] if best_model is None else [best_model.job]
    advised = recommendation.advised_jobs(recommendation.recommend_model(row), candidates)
    model = _model_of(request, advised[0]) if advised else None
    return model if model is not None and model.digest and not model.versions else None


def registration_context(row: Job) -> RegistrationChoice:
    """Propose the name under which this job's model is registered."""
    names = registry.model_names(row.project) if row.project is not None else []
    return RegistrationChoice(registry.model_name_for(row), names)


def _importance_bars(result: ImportanceAnswer) -> list[tuple[str, float, bool, Tendency]]:
    """Return the hyperparameters that matter most: importance, whether chance rarely gives it, tendency."""
    entries = sorted(result.importances, key=lambda entry: -entry.alone)
    return [
        (entry.name, entry.alone, entry.is_beyond_chance, describe_tendency(entry.influence))
        for entry in entries[:MOST_BARS]
    ]
