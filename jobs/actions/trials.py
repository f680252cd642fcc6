"""Single trials: queued by hand, run again, trained for real."""

from typing import Any

from django.db import transaction
from django.db.models import Max
from pydantic import ValidationError

from jobs import access, hints
from jobs.actions import audit, experiments, suggest
from jobs.actions.transition import move_trial
from jobs.contracts.after import AfterSpec, Retrain
from jobs.contracts.problems import Problem, escaped, first
from jobs.contracts.search_space import Values, value_errors
from jobs.contracts.values import apply_values
from jobs.errors import BadInput, Conflict, StaleState
from jobs.models import Job, Trial, User
from jobs.queries import jobs as queries
from jobs.queries import outcomes
from jobs.states import FINAL, JobState, TrialState

ANEW: dict[str, Any] = {"attempt": 0, "started": None, "finished": None, "restarts": 0, "error": None}
"""Columns of a trial that is queued again: nobody holds it, and its time is that of this run alone."""


def queue_by_hand(job: Job, values: Values, *, by: User) -> Trial:
    """Queue one configuration of a search beside those the algorithm chooses.

    Raises:
        Conflict: the job is no search.
        StaleState: it has ended, or what follows its trials has begun.
        BadInput: the values do not fit the space; says which.
    """
    access.require(by, job.project, access.Action.WRITE)
    if not job.facts.has_trials:
        raise Conflict(f"job {job.pk} is a {job.public_kind}, not a search")
    if not outcomes.search_of(job).space:
        raise Conflict("no script has told its hyperparameters yet; the first trial's end does")
    with transaction.atomic():
        root = searching(job.pk)
        _require_values(root, values)
        trial = suggest.make_trial(root, values, source="hand", by=by)
        audit.record("trial.queue", f"job:{job.pk}", by=by, project=job.project, trial=trial.number)
        hints.send("schedule", job=job.pk)
    return trial


def _require_values(root: Job, values: Values) -> None:
    """Refuse a configuration that lies outside the space, or that its experiment cannot take."""
    space = outcomes.search_of(root).space
    if found := [Problem(_place(name), message) for name, message in value_errors(space, values)]:
        raise BadInput(found[0].message, found)
    try:
        if root.revision is not None:
            apply_values(root.revision.spec, values)
    except ValidationError as error:
        problem = first(error)
        named = [name for name in values if problem.pointer.endswith(f"/{name}")]
        place = _place(named[0]) if named else "/values"
        raise BadInput(problem.message, [Problem(place, problem.message)]) from error
    except ValueError as error:
        raise BadInput(str(error), [Problem("/values", str(error))]) from error


def _place(name: str) -> str:
    return f"/values/{escaped(name)}"


def retry(trial: Trial, *, by: User) -> Trial:
    """Run the open executions of a failed or stopped trial again; finished ones stay.

    Raises:
        StaleState: the trial did not fail, was withdrawn, or its search is past its trials.
    """
    access.require(by, trial.job.project, access.Action.WRITE)
    with transaction.atomic():
        searching(trial.job_id)
        trial.refresh_from_db()
        if trial.state not in (TrialState.FAILED, TrialState.STOPPED):
            raise StaleState(
                f"trial {trial.number} is {trial.state}; only a failed or stopped one runs again"
            )
        _refuse_withdrawn(trial)
        trial.executions.incomplete().update(state=TrialState.QUEUED)
        move_trial(trial, TrialState.QUEUED, **ANEW)
        audit.record(
            "trial.retry", f"job:{trial.job_id}", by=by, project=trial.job.project, trial=trial.number
        )
    return trial


def _refuse_withdrawn(trial: Trial) -> None:
    if trial.source == outcomes.WITHDRAWN:
        raise StaleState(
            f"trial {trial.number} lies outside the space that is searched now; it was withdrawn"
        )


def go_on(trial: Trial, epochs: int | None = None, *, by: User) -> Trial:
    """Let a trial train on from its newest checkpoints, under its number.

    Args:
        trial: a completed one, whose trainings go on to `epochs`; or a failed or stopped one, which goes on
            where it was.
        epochs: up to which epoch a completed one goes on; of the others None.
        by: who does it.

    Raises:
        StaleState: it is in no such state, no checkpoint of it is left, or its search is past its trials.
        BadInput: `epochs` are missing or not wanted, no more than it has trained, or more than a training may
            have.
    """
    access.require(by, trial.job.project, access.Action.WRITE)
    with transaction.atomic():
        root = searching(trial.job_id)
        trial.refresh_from_db()
        over = trial.state == TrialState.COMPLETED
        if not over and trial.state not in (TrialState.FAILED, TrialState.STOPPED):
            raise StaleState(f"trial {trial.number} is {trial.state}; it goes on once it is over")
        _refuse_withdrawn(trial)
        _require_checkpoints(trial, every=over)
        fields = _longer(root, trial, epochs, over=over)
        again = trial.executions.all() if over else trial.executions.incomplete()
        again.update(state=TrialState.QUEUED)
        move_trial(trial, TrialState.QUEUED, **ANEW, **fields)
        where = f"job:{trial.job_id}"
        audit.record("trial.continue", where, by=by, project=root.project, trial=trial.number, epochs=epochs)
    return trial


def _require_checkpoints(trial: Trial, *, every: bool) -> None:
    """Refuse a trial of which nothing is left to go on from; of a completed one all executions go on."""
    standing = set(trial.checkpoints.kept().values_list("execution", flat=True))
    wanted = set(trial.executions.values_list("number", flat=True))
    if wanted <= standing or (standing and not every):
        return
    if every:
        raise StaleState(
            f"a checkpoint of trial {trial.number} is gone: only the best trials keep theirs once they are "
            "over. Queue its values again to train longer"
        )
    raise StaleState(f"trial {trial.number} left no checkpoint: retry it, which begins anew")


def _longer(root: Job, trial: Trial, epochs: int | None, *, over: bool) -> dict[str, int]:
    """Return the columns that make a trial train to `epochs`."""
    if epochs is None:
        if over:
            message = f"trial {trial.number} is completed: say up to which epoch it shall go on"
            raise BadInput(message, [Problem("/epochs", message)])
        return {}
    if not over:
        message = (
            f"trial {trial.number} is {trial.state} and goes on to its end: epochs are for a completed one"
        )
        raise BadInput(message, [Problem("/epochs", message)])
    trained = trial.executions.aggregate(most=Max("epochs"))["most"] or 0
    if epochs <= trained:
        message = f"trial {trial.number} has trained {trained} epochs: give more"
        raise BadInput(message, [Problem("/epochs", message)])
    spec = root.revision.spec if root.revision is not None else None
    if spec is not None and spec.search is not None:
        if spec.search.info.has_rungs and epochs <= spec.fit.epochs:
            message = f"{spec.search.algorithm} decides on the first {spec.fit.epochs} epochs: give more"
            raise BadInput(message, [Problem("/epochs", message)])
        try:
            fit = spec.model_copy(update={"search": None})  # of a search with rungs, epochs are no value
            apply_values(fit, {**trial.values, "epochs": epochs})
        except (ValueError, ValidationError) as error:
            message = first(error).message if isinstance(error, ValidationError) else str(error)
            raise BadInput(message, [Problem("/epochs", message)]) from error
    return {"until": epochs}


def train(trial: Trial, *, by: User) -> Job:
    """Queue a training with a trial's values, as an experiment of its own that can be changed further.

    Only the search is left out of its spec, with what would follow several trials: one model is trained as
    the search would retrain its best.

    Raises:
        Forbidden: `by` may not write in the project.
        BadSpec: the spec does not hold any more, or its data are not there.
        Conflict: the search has no experiment or project.
    """
    search = trial.job
    if search.revision is None or search.experiment is None or search.project is None:
        raise Conflict(f"job {search.pk} does not come from an experiment")
    access.require(by, search.project, access.Action.WRITE)
    spec = search.revision.spec
    retrain = (spec.after.retrain or Retrain()).model_copy(update={"top": 1})
    alone = spec.model_copy(update={"search": None, "after": AfterSpec(retrain=retrain)})
    try:
        body = apply_values(alone, trial.values).to_json()
    except (ValueError, ValidationError) as error:
        raise Conflict(f"the values of trial {trial.number} no longer fit: {error}") from error
    return experiments.submit_spec(
        search.project,
        None,
        name=f"{search.experiment.name[:170]}: trial {trial.number}",
        spec=body,
        tags=search.experiment.tags,
        notes=f"The values of trial {trial.number} of job {search.pk}.",
        by=by,
    )


def searching(job_id: int) -> Job:
    """Return a search, locked, that still takes trials."""
    root = Job.objects.select_for_update(of=("self",)).select_related("revision").get(pk=job_id)
    if root.state in FINAL:
        way = "clone it to try more" if root.state == JobState.COMPLETED else "retry or clone it first"
        raise StaleState(f"search {job_id} is {root.state} and takes no more trials; {way}")
    if not queries.takes_trials(root):
        raise StaleState(f"search {job_id} goes on with the best of its trials already; clone it to try more")
    return root
