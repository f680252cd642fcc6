"""Starts searches that follow from another's answer: its best trials again, or a smaller space."""

import secrets
from typing import Any

from django.db import transaction

from jobs import hints
from jobs.actions.audit import audit
from jobs.actions.code import own_code
from jobs.actions.experiments import experiments
from jobs.actions.runs.payloads import change_payload
from jobs.actions.search import suggest
from jobs.errors import BadInput, Conflict, StaleState
from jobs.models import Experiment, Job, Project, Trial, User
from jobs.queries.search import answer, outcomes
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem
from jobs.spec.sections.after import AfterSpec
from jobs.spec.sections.search import SearchSpec

MOST_EXECUTIONS = 100
CHOSEN = "chosen"
"""The source stored for a trial that repeats another search's trial."""

SMALLER = "smaller range"
"""The end of the name of an experiment with a smaller space."""


def repeat_best(search: Job, *, by: User, executions: int | None = None) -> Job:
    """Queue a search that trains a search's best two trials again, with new seeds.

    Its answer shows whether the best's lead is more than luck. It has no other trials and no later
    steps.

    Args:
        search: a search that was submitted by an experiment.
        by: the acting user.
        executions: how often each of the two is trained; None for as many as `queries.answer` proposes.

    Raises:
        Conflict: the search has no experiment.
        StaleState: it has fewer than two trials with a score and different values.
        BadInput: `executions` is not between 2 and 100.
    """
    project, experiment, _ = _source_of_search(search)
    spec, ranked = repeating_spec(search, executions, by=by)
    numbers = [trial.number for trial in ranked]
    with transaction.atomic():
        job = _submit_follow_up(
            project,
            experiment,
            spec,
            what=f"trials {numbers[0]} and {numbers[1]} again",
            notes=f"Trials {numbers[0]} and {numbers[1]} of job {search.pk} with new seeds.",
            by=by,
        )
        # The algorithm is not asked for further trials.
        change_payload(job, exhausted=True, passes_batch_size=search.payload.passes_batch_size)
        for trial in ranked:
            suggest.make_trial(job, search.payload.whole_values(trial.values), source=CHOSEN, by=by)
        audit.record("job.repeat", f"job:{job.pk}", by=by, project=project, of=search.pk, trials=numbers)
        hints.send("schedule", job=job.pk)
    job.refresh_from_db()
    return job


def repeating_spec(
    search: Job, executions: int | None = None, *, by: User
) -> tuple[ExperimentSpec, list[Trial]]:
    """Return the spec with which `repeat_best` trains the best two trials again, and these trials.

    Raises:
        Conflict, StaleState, BadInput: as `repeat_best`.
    """
    project, _, spec = _source_of_search(search)
    own_code.require_right(by, project, search.revision)
    ranked = list(outcomes.best_trials(search, limit=2))
    if len(ranked) < 2:
        raise StaleState(f"search {search.pk} has fewer than two trials with a score and different values")
    if executions is None:
        executions = answer.repeats_to_offer(search, ranked) or answer.REPEATS
    if not 2 <= executions <= MOST_EXECUTIONS:
        message = f"give 2 to {MOST_EXECUTIONS} executions, not {executions}"
        raise BadInput(message, [Problem("/executions", message)])
    repeated = _repeating(search, executions)
    return spec.model_copy(update={"search": repeated, "after": AfterSpec()}), ranked


def _repeating(search: Job, executions: int) -> SearchSpec:
    """Return the spec for a search with the same space and evaluation for two trials."""
    spec = outcomes.search_of(search)
    body = {
        "algorithm": "random",
        "objective": spec.objective,
        "objectives": spec.objectives,
        "max_trials": 2,
        "executions_per_trial": executions,
        "evaluation": spec.evaluation,
        # The seeds of the earlier search would repeat its trainings.
        "seed": secrets.randbelow(2**32),
        "space": outcomes.widest_space(search),
    }
    return SearchSpec.model_validate(body)


def queue_narrower_search(search: Job, *, by: User, registers: bool = True) -> Job:
    """Queue a search like another one in a smaller space around its best trial.

    An algorithm that can learn from earlier trials starts with the search's.

    Args:
        search: a search that was submitted by an experiment.
        by: the acting user.
        registers: whether the versions that the search's spec names are registered.

    Raises:
        Conflict: the search has no experiment, or no trial with a score, or its smaller space would have no
            configuration that it has not tried.
    """
    project, experiment, _ = _source_of_search(search)
    spec, best = narrower_spec(search, by=by)
    with transaction.atomic():
        job = _submit_follow_up(
            project,
            experiment,
            spec,
            what=SMALLER,
            notes=_note_on_narrower(search, best),
            by=by,
            registers=registers,
        )
        # Scores of the earlier trials count if the algorithm learns from them.
        change_payload(job, passes_batch_size=search.payload.passes_batch_size)
        audit.record("job.narrow", f"job:{job.pk}", by=by, project=project, of=search.pk)
    return job


def draft_narrower_search(search: Job, *, by: User) -> Experiment:
    """Save the search that `queue_narrower_search` would queue as an experiment with a draft."""
    project, experiment, _ = _source_of_search(search)
    spec, best = narrower_spec(search, by=by)
    return experiments.create(
        project,
        name=_name_after(experiment, SMALLER),
        draft=spec.to_json(),
        tags=experiment.tags,
        notes=_note_on_narrower(search, best),
        by=by,
    )


def _note_on_narrower(search: Job, best: Trial) -> str:
    """Return the note of an experiment with a smaller space."""
    return f"The space of job {search.pk}, smaller around its best trial {best.number}."


def narrower_spec(search: Job, *, by: User) -> tuple[ExperimentSpec, Trial]:
    """Return the spec of a search in the smaller space around a search's best trial, and this trial.

    Raises:
        Conflict: as `queue_narrower_search`.
    """
    project, _, spec = _source_of_search(search)
    own_code.require_right(by, project, search.revision)
    present = outcomes.search_of(search)
    best = outcomes.best_trials(search, limit=1).first()
    if best is None:
        raise Conflict(f"no trial of search {search.pk} has a score yet")
    space = answer.smaller_space(search, present, best)
    if space is None:
        raise Conflict(f"search {search.pk} has already tried all of the smaller space around its best trial")
    learns = present.info.learns_from_earlier
    smaller = {"space": space, "warm_start": search.pk if learns else None, "start_with": ()}
    return spec.model_copy(update={"search": present.model_copy(update=smaller)}), best


def _source_of_search(search: Job) -> tuple[Project, Experiment, ExperimentSpec]:
    """Return the project, the experiment and a search's spec."""
    outcomes.search_of(search)
    if search.revision is None or search.experiment is None or search.project is None:
        raise Conflict(f"job {search.pk} does not come from an experiment")
    return search.project, search.experiment, search.revision.spec


def _submit_follow_up(
    project: Project,
    experiment: Experiment,
    spec: ExperimentSpec,
    *,
    what: str,
    notes: str,
    by: User,
    registers: bool = True,
) -> Job:
    body: dict[str, Any] = spec.to_json()
    return experiments.submit_spec(
        project,
        None,
        name=_name_after(experiment, what),
        spec=body,
        tags=experiment.tags,
        notes=notes,
        by=by,
        registers=registers,
    )


def _name_after(experiment: Experiment, what: str) -> str:
    return f"{experiment.name[: 198 - len(what)]}: {what}"
