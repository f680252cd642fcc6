"""Chooses the one model that a job's page, its next steps and REST recommend.

A warning describes the fault of one model; only this module chooses, so that no two places can advise
different models, and no place one that has a warning against its promotion.
"""

from collections.abc import Sequence
from typing import NamedTuple

from jobs.kinds.ensemble.payload import EnsembleResult, member_name
from jobs.messages.reports.ensemble import EnsembleReport
from jobs.messages.reports.verdicts import is_clearly_better
from jobs.messages.warning_codes import WORSE_THAN_TRIAL
from jobs.models import Job
from jobs.queries.runs import model_reports
from jobs.queries.search import baseline, outcomes
from jobs.spec.sections.search import Objective
from jobs.states import FINAL, JobState


class Recommendation(NamedTuple):
    """The model to use of those that a root job's steps made.

    Attributes:
        job: the step that made it; None if no model is recommended.
        why: the reason, in sentences.
    """

    job: Job | None
    why: str


def recommend_model(root: Job) -> Recommendation | None:
    """Return the model to use; None while steps may change it, or if there is none to choose.

    None is recommended of a root that retrains a trial if its search learned nothing.
    """
    if root.state not in FINAL:
        return None
    if root.facts.trains:
        return _no_model_of_search(root) if root.state == JobState.COMPLETED else None
    completed = [child for child in root.children.all() if child.state == JobState.COMPLETED]
    trained = sorted((job for job in completed if job.facts.trains), key=lambda job: job.ordinal)
    if not trained:
        return None
    if (nothing := _no_model_of_search(root)) is not None:
        return nothing
    sound = [job for job in trained if not is_doubted(job)]
    ensemble = next((job for job in completed if job.facts.candidate == "ensemble"), None)
    doubt = _doubt_about(ensemble, trained) if ensemble is not None else ""
    if ensemble is not None and not doubt:
        return Recommendation(ensemble, "On validation rows it clearly beats its best single model.")
    if not sound:
        one = "is" if len(trained) == 1 else "are"
        return Recommendation(
            None,
            f"{_labels(trained)} {one} clearly worse than the trial with these values: see the warning. "
            "Retrain with another seed (fit.seed), or retrain the next best trial.",
        )
    return _single_model(sound, trained, doubt, outcomes.objective_of(root))


def _no_model_of_search(root: Job) -> Recommendation | None:
    """Return that no model is recommended if no trial of the search beats the constant; else None."""
    compared = baseline.comparison_of_search(root)
    if compared is None or compared.is_beaten:
        return None
    return Recommendation(None, compared.describe())


def advised_jobs(recommended: Recommendation | None, candidates: Sequence[Job]) -> list[Job]:
    """Return the steps whose models may be proposed for registration and promotion.

    Args:
        recommended: what `recommend_model` returns for their root.
        candidates: the steps to choose from if it recommends nothing yet.
    """
    if recommended is not None:
        return [] if recommended.job is None else [recommended.job]
    return [job for job in candidates if not is_doubted(job)]


def is_doubted(job: Job) -> bool:
    """Return whether a model has a warning against its promotion."""
    return any(warning["code"] == WORSE_THAN_TRIAL for warning in job.warnings)


def _doubt_about(ensemble: Job, trained: Sequence[Job]) -> str:
    """Return why an ensemble is not recommended; empty if it clearly beats its best member."""
    if members := _doubted_members(ensemble, trained):
        return f"it contains {_labels(members)}"
    # Not from its warnings: earlier releases judged by another rule, and the page judges by the report too.
    stored = model_reports.reports_of_job(ensemble, ["report"])
    report = model_reports.read_report(stored[-1]) if stored else None
    if not isinstance(report, EnsembleReport):
        return "its report, which compares it with its members, cannot be read"
    return "" if is_clearly_better(report) else "it is not clearly better"


def _doubted_members(ensemble: Job, trained: Sequence[Job]) -> list[Job]:
    results = ensemble.results
    weights = results.weights if isinstance(results, EnsembleResult) else []
    used = {entry.member for entry in weights if entry.weight > 0}
    return [job for job in trained if is_doubted(job) and member_name(job.pk) in used]


def _single_model(
    sound: Sequence[Job], trained: Sequence[Job], doubt: str, objective: Objective
) -> Recommendation:
    best = outcomes.best_of(sound, objective)
    score = outcomes.validation_score(best, objective)
    value = "" if score is None else f", {score:.4g}"
    measure = f"{objective.metric.removeprefix('val_')} on validation rows{value}"
    if len(trained) == 1:
        sentences = [f"It is the only retrained model: {measure}."]
    elif len(sound) == 1:
        sentences = [f"Of {len(trained)} retrained models only it is not clearly worse than its trial."]
    else:
        sentences = [f"Of {len(sound)} retrained models it has the best {measure}."]
    if len(sound) > 1 and (doubted := [job for job in trained if is_doubted(job)]):
        sentences.append(f"Not counted: {_labels(doubted)}, clearly worse than the trial with these values.")
    if doubt:
        sentences.append(f"The ensemble is not recommended: {doubt}.")
    return Recommendation(best, " ".join(sentences))


def _labels(jobs: Sequence[Job]) -> str:
    return ", ".join(job.label for job in jobs)
