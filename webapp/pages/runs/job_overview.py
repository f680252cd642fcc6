"""Builds the overview tab of a job's page: candidates, the best trial, and the answer of a search."""

from typing import Any, NamedTuple

from django.utils.module_loading import import_string

from jobs.answers.search.search_results import AnswerOut, LeadOut, RankedTrialOut
from jobs.messages.analysis import ImportanceAnswer
from jobs.models import Job, ModelVersion
from jobs.queries.code import sandboxes
from jobs.queries.data import datasets
from jobs.queries.registry import registry, versions
from jobs.queries.runs import evaluations, model_reports
from jobs.queries.search import (
    answer,
    outcomes,
    retrained_models,
    retraining,
    templates_tried,
)
from jobs.spec.sections.script_model import MODEL_FILE
from webapp import analysis
from webapp.pages.search.importance import Tendency, tendency
from webapp.pages.shortcuts import Request
from webapp.templatetags import words

MOST_BARS = 5
"""The number of hyperparameters that the answer lists by importance; the chart shows all."""
METHODS = {
    "welch": "Welch's t-interval of independent trainings. It covers the seeds; another choice of "
    "validation rows would add to it.",
    "paired_folds": "t-interval of the differences on the same folds, corrected for their common training "
    "rows (Nadeau and Bengio 2003).",
}


class Verdict(NamedTuple):
    """Whether the lead of the best trial is more than luck: icon, tone, sentence, numbers and method."""

    icon: str
    tone: str
    sentence: str
    detail: str = ""
    method: str = ""


class BestModel(NamedTuple):
    """The model that a step made of the best trial: the job, its state, its artifact and its versions."""

    job: Job
    digest: str
    versions: list[ModelVersion]


class Again(NamedTuple):
    """The buttons that train with the values of the best trial: a label, and the tips of both."""

    label: str
    tip: str
    register_tip: str


TRAINED_AGAIN = Again(
    "Retrain",
    "Trains these values again on training and validation rows, as a job of its own.",
    "Retrains these values and registers the model as a version.",
)
SCRIPT_AGAIN = Again(
    "Run as a job",
    "Runs the script once more with these values, as a job of its own.",
    f"Runs the script once more with these values, and registers its {MODEL_FILE} as a version.",
)


def runs_script(row: Job) -> bool:
    """Return whether a job runs a script, of which there are no checkpoints."""
    return row.revision is not None and row.revision.spec.model.info.trains_itself


def context(request: Request, row: Job) -> dict[str, Any]:
    """Return the additional context of the overview of a job."""
    # A search's own metrics repeat its chosen candidate's; so do those of an ensemble of chosen trials.
    evaluated = [row] if row.facts.evaluates else []
    members = [*evaluated, *row.children.evaluating()]
    candidates = [entry for member in members if (entry := evaluations.summarize_candidate(member))]
    versions_of_jobs = versions.versions_by_job(request.user, [member.pk for member in members])
    registered = [version for job_versions in versions_of_jobs.values() for version in job_versions]
    return {
        "by_code": versions.measured_by_code(row),
        "candidates": [
            entry | {"versions": versions_of_jobs.get(entry["job"].pk, [])} for entry in candidates
        ],
        "has_versions": bool(registered),
        "to_request": versions.unrequested_candidates(registered),
        "validated": versions.validated_version(request.user, row),
        "best_single": retrained_models.best_retrained(row),
        "details": _details(row),
        "chosen": row.payload.chosen_trials(),
        "hyperparameters": row.payload.hyperparameters(),
        "weighted_by": datasets.weight_column(row),
        "training": None if runs_script(row) else retraining.training_result(row),
        "reported": row.results.metrics.get("reported", {}),
        "findings": model_reports.report_findings(model_reports.reports_of_job(row, ("report",))),
        "chosen_epoch": retraining.chosen_epoch(row),
        **(_search_context(request, row) if row.facts.has_trials else {}),
    }


def _details(row: Job) -> object:
    """Return the content of the section that only jobs of this kind have, or None."""
    return import_string(row.facts.details)(row) if row.facts.details else None


def _search_context(request: Request, row: Job) -> dict[str, Any]:
    answer_out = answer.answer_of_search(row) if answer.is_over(row) else None
    may_run = sandboxes.may_run(request.user, row)
    if answer_out is None or answer_out.best is None:
        best = outcomes.best_trials(row, limit=1).prefetch_related("executions").first()
        ranked = answer.ranked_trial_out(best) if best is not None else None
        return {
            "answer": None,
            "templates_tried": templates_tried.template_results(row),
            "ranked": ranked,
            "tied": _tied(row, ranked),
            **_next_steps(request, row, ranked, may_run=may_run),
        }
    importance = analysis.importance_of(row)
    # Stored as JSON, and not read into its class by the query.
    result = importance.result and ImportanceAnswer.model_validate(importance.result)
    return {
        "answer": answer_out,
        "templates_tried": answer_out.templates,
        "ranked": answer_out.best,
        "tied": _tied(row, answer_out.best),
        "verdict": verdict(answer_out),
        "importance": importance,
        "bars": _bars(result) if result else [],
        "widens": [name for name in answer_out.at_edge if name not in answer_out.at_declared_edge],
        **_next_steps(request, row, answer_out.best, may_run=may_run),
    }


def _tied(row: Job, best: RankedTrialOut | None) -> list[int]:
    return outcomes.trials_tied_with(row, best.number) if best is not None else []


def _next_steps(request: Request, row: Job, best: RankedTrialOut | None, *, may_run: bool) -> dict[str, Any]:
    """Return the model that was made of the best trial, and whether it can be made now."""
    if best is None:
        return {}
    training = retrained_models.retrained_step(row, best.number)
    best_model = None
    if training is not None:
        digest = retrained_models.model_digest(training)
        registered = versions.versions_by_artifact(request.user, [digest]).get(digest, []) if digest else []
        best_model = BestModel(training, digest, registered)
    may_train = may_run and row.experiment_id is not None
    return {
        "best_model": best_model,
        "may_train": may_train,
        "again": SCRIPT_AGAIN if runs_script(row) else TRAINED_AGAIN,
        **(registration_context(row) if may_train and (best_model is None or best_model.digest) else {}),
    }


def registration_context(row: Job) -> dict[str, Any]:
    """Return the name under which a model of this job is registered, and the project's model names."""
    names = registry.model_names(row.project) if row.project is not None else []
    return {"register_as": registry.model_name_for(row), "model_names": names}


def _bars(result: ImportanceAnswer) -> list[tuple[str, float, Tendency]]:
    """Return the hyperparameters that matter most, with their share of the importance and their tendency."""
    entries = sorted(result.importances, key=lambda entry: -entry.alone)
    return [(entry.name, entry.alone, tendency(entry.influence)) for entry in entries[:MOST_BARS]]


def verdict(answer_out: AnswerOut) -> Verdict | None:
    """Return whether the lead of the best trial is more than luck, in words; None with several objectives."""
    if answer_out.next is None:
        return Verdict("info-circle", "", "Only one configuration has a score, so there is no lead to judge.")
    if answer_out.lead is None:
        return None
    other, lead = f"trial {answer_out.next.number}", answer_out.lead
    if lead.verdict == "clear":
        sentence = f"Yes. Its lead over {other} is more than luck."
        return Verdict("check", "completed", sentence, _numbers(answer_out, lead), METHODS[lead.method])
    if lead.verdict == "unclear":
        sentence = f"No. It cannot be distinguished from {other}, the next one."
        detail = f"{_numbers(answer_out, lead)} {_how_to_tell(lead)}"
        return Verdict("scale", "retrying", sentence, detail, METHODS[lead.method])
    if min(lead.trainings) < 2:
        reason = (
            "Each of the two was trained once" if max(lead.trainings) < 2 else f"{other} was trained once"
        )
        sentence = f"That is not known yet. {reason[0].upper()}{reason[1:]}."
    else:
        sentence = "That is not known yet. Their repeated trainings have exactly the same scores."
    difference = _difference(answer_out, lead)
    detail = f"{difference} Trainings with other seeds differ by an amount that is not known yet."
    return Verdict("help", "retrying", sentence, f"{detail} To find out, train both again with new seeds.")


def _difference(answer_out: AnswerOut, lead: LeadOut) -> str:
    if lead.value == 0:
        return f"Both have the same {answer_out.scoring.metric}."
    better = "better" if lead.value > 0 else "worse over all trainings with its values"
    return f"Its {answer_out.scoring.metric} is {words.number(abs(lead.value), 3)} {better}."


def _numbers(answer_out: AnswerOut, lead: LeadOut) -> str:
    first, second = lead.trainings
    return (
        f"{_difference(answer_out, lead)} {100 * lead.confidence:.0f} % interval of the difference: "
        f"{words.number(lead.low, 3)} to {words.number(lead.high, 3)}, from {first} and {second} trainings."
    )


def _how_to_tell(lead: LeadOut) -> str:
    if lead.needed is None:
        return "More than 100 trainings of each could not settle so small a difference: use either."
    return f"About {lead.needed} trainings of each would settle a lead of this size."
