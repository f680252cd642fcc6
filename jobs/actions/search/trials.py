"""Queues, retries, continues and retrains single trials in a search."""

from typing import Any

from django.db import transaction
from django.db.models import Max
from pydantic import ValidationError

from jobs import hints
from jobs.actions.audit import audit
from jobs.actions.code import own_code
from jobs.actions.experiments import experiments
from jobs.actions.runs.payloads import change_payload
from jobs.actions.search import suggest
from jobs.actions.transition import move_trial
from jobs.errors import BadInput, Conflict, StaleState
from jobs.kinds.base import SourceTrial
from jobs.models import Experiment, Job, Project, Trial, User
from jobs.queries.search import outcomes
from jobs.queries.search import trials as queries
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem, escaped, first
from jobs.spec.sections.after import AfterSpec, Register, Retrain
from jobs.spec.space.search_space import Values, value_errors
from jobs.spec.space.values import apply_values
from jobs.states import FINAL, JobState, TrialState

RESET: dict[str, Any] = {"attempt": 0, "started": None, "finished": None, "restarts": 0, "error": None}
"""New column values for a requeued trial: no attempt holds it, and its times begin again."""


def queue_by_hand(job: Job, values: Values, *, by: User) -> Trial:
    """Queue one configuration in a search in addition to the algorithm's.

    Raises:
        Conflict: the job is not a search.
        StaleState: the search has ended, or a later step has begun.
        BadInput: the values do not fit the space; has a problem for each.
    """
    own_code.require_right(by, job.project, job.revision)
    if not job.facts.has_trials:
        raise Conflict(f"job {job.pk} ({job.facts.noun}) is not a search")
    if not outcomes.search_of(job).space:
        raise Conflict("the search space is not known yet: scripts report it when the first trial ends")
    with transaction.atomic():
        root = locked_open_search(job.pk)
        _require_values(root, values)
        trial = suggest.make_trial(root, values, source="hand", by=by)
        audit.record("trial.queue", f"job:{job.pk}", by=by, project=job.project, trial=trial.number)
        hints.send("schedule", job=job.pk)
    return trial


def _require_values(root: Job, values: Values) -> None:
    """Refuse a configuration that is outside the space, or that makes the experiment's spec invalid."""
    space = outcomes.search_of(root).space
    if problems := [
        Problem(_pointer_to_value(name), message) for name, message in value_errors(space, values)
    ]:
        raise BadInput(problems[0].message, problems)
    try:
        if root.revision is not None:
            apply_values(root.revision.spec, values)
    except ValidationError as error:
        problem = first(error)
        named = [name for name in values if problem.pointer.endswith(f"/{name}")]
        place = _pointer_to_value(named[0]) if named else "/values"
        raise BadInput(problem.message, [Problem(place, problem.message)]) from error
    except ValueError as error:
        raise BadInput(str(error), [Problem("/values", str(error))]) from error


def _pointer_to_value(name: str) -> str:
    """Return the JSON pointer to a value."""
    return f"/values/{escaped(name)}"


def retry(trial: Trial, *, by: User) -> Trial:
    """Queue a failed or stopped trial's unfinished executions again. Finished ones are kept.

    Raises:
        StaleState: the trial is not failed or stopped, was withdrawn, or its search accepts no more trials.
    """
    own_code.require_right(by, trial.job.project, trial.job.revision)
    with transaction.atomic():
        locked_open_search(trial.job_id)
        trial.refresh_from_db()
        if trial.state not in (TrialState.FAILED, TrialState.STOPPED):
            raise StaleState(
                f"trial {trial.number} is {trial.state}; only a failed or stopped trial can be retried"
            )
        _refuse_withdrawn(trial)
        left = trial.executions.incomplete()
        left.update(state=TrialState.QUEUED)
        # Without a checkpoint, an execution begins again.
        left.exclude(number__in=trial.checkpoints.kept().values("execution")).update(epochs=0)
        move_trial(trial, TrialState.QUEUED, **RESET)
        audit.record(
            "trial.retry", f"job:{trial.job_id}", by=by, project=trial.job.project, trial=trial.number
        )
    return trial


def _refuse_withdrawn(trial: Trial) -> None:
    if trial.source == outcomes.WITHDRAWN:
        raise StaleState(f"trial {trial.number} was withdrawn: it is outside the search's current space")


def continue_training(trial: Trial, epochs: int | None = None, *, by: User) -> Trial:
    """Continue training a trial from its newest checkpoints, under its number.

    Args:
        trial: a completed trial, which continues to `epochs`; or a failed or stopped one, which resumes.
        epochs: a completed trial's last epoch; None for the others.
        by: the acting user.

    Raises:
        StaleState: the trial is in another state, has no checkpoint left, or its search accepts no more
            trials.
        BadInput: `epochs` is missing, not allowed in this state, or out of bounds.
    """
    with transaction.atomic():
        fields = require_continuable(trial, epochs, by=by)
        completed = trial.state == TrialState.COMPLETED
        # All executions of a completed trial train longer; in other trials, only unfinished ones do.
        again = trial.executions.all() if completed else trial.executions.incomplete()
        again.update(state=TrialState.QUEUED)
        move_trial(trial, TrialState.QUEUED, **RESET, **fields)
        where, project = f"job:{trial.job_id}", trial.job.project
        audit.record("trial.continue", where, by=by, project=project, trial=trial.number, epochs=epochs)
    return trial


def require_continuable(trial: Trial, epochs: int | None, *, by: User) -> dict[str, int]:
    """Check that `continue_training` would accept these arguments, and return the columns that it changes.

    The search is locked until the end of the transaction.

    Raises:
        StaleState, BadInput: as `continue_training`.
    """
    own_code.require_right(by, trial.job.project, trial.job.revision)
    with transaction.atomic():
        root = locked_open_search(trial.job_id)
        trial.refresh_from_db()
        _refuse_programs(root)
        completed = trial.state == TrialState.COMPLETED
        if not completed and trial.state not in (TrialState.FAILED, TrialState.STOPPED):
            raise StaleState(f"trial {trial.number} is {trial.state}; only a final trial can be continued")
        _refuse_withdrawn(trial)
        _require_checkpoints(trial, every=completed)
        return _continuation_fields(root, trial, epochs, completed=completed)


def _refuse_programs(search: Job) -> None:
    if search.revision is not None and search.revision.spec.model.info.trains_itself:
        raise StaleState(
            "a script has no checkpoints that Trainyard could continue from: retry the trial, or queue its "
            "values again with more steps"
        )


def _require_checkpoints(trial: Trial, *, every: bool) -> None:
    """Refuse a trial without checkpoints. With `every`, each execution must have one."""
    with_checkpoint = set(trial.checkpoints.kept().values_list("execution", flat=True))
    needed = set(trial.executions.values_list("number", flat=True))
    if needed <= with_checkpoint or (with_checkpoint and not every):
        return
    if every:
        raise StaleState(
            f"a checkpoint of trial {trial.number} was removed: only the best trials keep theirs. Queue its "
            "values again to train longer"
        )
    raise StaleState(f"trial {trial.number} has no checkpoint: retry it, which starts from the beginning")


def _continuation_fields(root: Job, trial: Trial, epochs: int | None, *, completed: bool) -> dict[str, int]:
    """Return a trial's columns if it continues to `epochs`."""
    if epochs is None:
        if completed:
            message = f"trial {trial.number} is completed: enter the epoch to which it continues"
            raise BadInput(message, [Problem("/epochs", message)])
        return {}
    if not completed:
        message = f"trial {trial.number} is {trial.state} and resumes to its own end: leave epochs empty"
        raise BadInput(message, [Problem("/epochs", message)])
    trained = trial.executions.aggregate(most=Max("epochs"))["most"] or 0
    if epochs <= trained:
        message = f"trial {trial.number} has already trained {trained} epochs: enter more"
        raise BadInput(message, [Problem("/epochs", message)])
    spec = root.revision.spec if root.revision is not None else None
    if spec is not None and spec.search is not None:
        if spec.search.info.has_rungs and epochs <= spec.fit.epochs:
            message = f"{spec.search.algorithm} manages the first {spec.fit.epochs} epochs itself: enter more"
            raise BadInput(message, [Problem("/epochs", message)])
        try:
            # Without the search, since one with rungs does not accept epochs as a value.
            alone = spec.model_copy(update={"search": None})
            apply_values(alone, {**trial.values, f"{spec.model.info.fit_prefix}epochs": epochs})
        except (ValueError, ValidationError) as error:
            message = first(error).message if isinstance(error, ValidationError) else str(error)
            raise BadInput(message, [Problem("/epochs", message)]) from error
    return {"until": epochs}


def retrain(trial: Trial, *, by: User, register_as: str | None = None) -> Job:
    """Queue a training with a trial's values in a new experiment, which can be changed further.

    Its spec is the search's spec without the section `search` and the steps for several trials: one model is
    trained as the search would retrain its best trial. The spec has no objective any more, so it names the
    measure that chooses the epoch. A script has no such measure: it runs once more with the trial's values.

    Args:
        trial: any trial of a search with an experiment.
        by: the acting user.
        register_as: the registered model to which the trained model is added as a version; None for no
            version.

    Raises:
        Forbidden: `by` may not write in the project.
        BadSpec: the spec is no longer valid, or its data do not exist.
        Conflict: the search has no experiment or project.
    """
    search = trial.job
    project, experiment, spec = retraining_spec(trial, by=by, register_as=register_as)
    with transaction.atomic():
        job = experiments.submit_spec(
            project,
            None,
            name=_name_of_retraining(experiment, trial),
            spec=spec.to_json(),
            tags=experiment.tags,
            notes=_note_on_retraining(trial),
            by=by,
        )
        change_payload(
            job,
            source=SourceTrial(search=search.pk, trial=trial.number),
            passes_batch_size=search.payload.passes_batch_size,
        )
    return job


def draft_retraining(trial: Trial, *, by: User) -> Experiment:
    """Save the training that `retrain` would queue as an experiment with a draft."""
    project, experiment, spec = retraining_spec(trial, by=by)
    return experiments.create(
        project,
        name=_name_of_retraining(experiment, trial),
        draft=spec.to_json(),
        tags=experiment.tags,
        notes=_note_on_retraining(trial),
        by=by,
    )


def _name_of_retraining(experiment: Experiment, trial: Trial) -> str:
    return f"{experiment.name[:170]}: trial {trial.number}"


def _note_on_retraining(trial: Trial) -> str:
    return f"The values of trial {trial.number} of job {trial.job_id}."


def retraining_spec(
    trial: Trial, *, by: User, register_as: str | None = None
) -> tuple[Project, Experiment, ExperimentSpec]:
    """Return a trial's project and experiment, and the spec with which `retrain` trains its values.

    Raises:
        Conflict: the search has no experiment or project, or the values no longer fit.
    """
    search = trial.job
    if search.revision is None or search.experiment is None or search.project is None:
        raise Conflict(f"job {search.pk} does not come from an experiment")
    own_code.require_right(by, search.project, search.revision)
    spec = search.revision.spec
    registered = Register(model=register_as) if register_as is not None else None
    after = AfterSpec(retrain=_retrain_once(spec), register=registered)
    alone = spec.model_copy(update={"search": None, "after": after})
    try:
        return search.project, search.experiment, apply_values(alone, trial.values)
    except (ValueError, ValidationError) as error:
        raise Conflict(f"the values of trial {trial.number} no longer fit: {error}") from error


def _retrain_once(spec: ExperimentSpec) -> Retrain | None:
    """Return how a search's model is retrained alone, or None for a program that trains by itself."""
    if spec.model.info.trains_itself:
        return None
    retrain = spec.after.retrain or Retrain()
    if spec.search is not None and retrain.monitor is None:
        retrain = retrain.model_copy(update={"monitor": spec.search.objective.metric})
    return retrain.model_copy(update={"top": 1})


def locked_open_search(job_id: int) -> Job:
    """Lock and return a search that accepts trials; raise StaleState if it has ended or moved on."""
    root = Job.objects.locked().get(pk=job_id)
    if root.state in FINAL:
        is_complete = root.state == JobState.COMPLETED
        way = "run it again to try more" if is_complete else "retry it first, or run it again"
        raise StaleState(f"search {job_id} is {root.state} and accepts no more trials; {way}")
    if root.payload.finishing:
        raise StaleState(
            f"search {job_id} is being finished and accepts no more trials; run it again to try more"
        )
    if not queries.accepts_trials(root):
        raise StaleState(f"search {job_id} already retrains its best trials; run it again to try more")
    return root
