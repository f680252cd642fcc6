"""Changes job and trial states by compare-and-set, with an event and hints on commit."""

from collections.abc import Iterable
from typing import Any

from django.db import transaction

from jobs import clock, hints
from jobs.actions.row_updates import update_rows
from jobs.actions.runs import events
from jobs.errors import StaleState
from jobs.models import Job, Trial
from jobs.queries.runs.codec import Event
from jobs.sql import one_of
from jobs.states import FINAL, TRIAL_FINAL, JobState, TrialState, may_follow, trial_may_follow


def move(job: Job, to: JobState, *, fence: int | None = None, reason: str = "", **fields: Any) -> Job:
    """Move a job to the state `to`, and set further columns in the same update.

    Args:
        job: any instance of the row; it is refreshed.
        to: the new state.
        fence: if given, the fencing token: the number that the job's newest attempt must have.
        reason: a word for the state event, such as `killed`.
        fields: other columns to set.

    Raises:
        StaleState: the row's state does not allow the transition, or the fencing token is old. Nothing was
            changed.
    """
    derived = _derived_columns(to)
    with transaction.atomic():
        rows = Job.objects.filter(pk=job.pk, state__in=may_follow(to))
        if fence is not None:
            rows = rows.filter(fence=fence)
        if not rows.update(state=to, **(derived | fields)):
            state = Job.everything.values_list("state", flat=True).get(pk=job.pk)
            raise StaleState(f"job {job.pk} is {state}; it cannot become {to} now")
        job.refresh_from_db()
        # In the same transaction, so that no reader sees the state without its event or the reverse.
        body = events.event("state", job, state=str(to))
        events.append(job.root_id_or_self, [body | {"reason": reason} if reason else body])
        hints.send("schedule", job=job.pk)
    return job


def _derived_columns(to: JobState) -> dict[str, Any]:
    """Return the columns that follow from a job's new state."""
    if to is JobState.QUEUED:
        return {"queued": clock.now(), "finished": None}
    if to in FINAL:
        return {"finished": clock.now(), "why_waiting": ""}
    return {"why_waiting": ""} if to in (JobState.STARTING, JobState.RUNNING) else {}


def move_trial(trial: Trial, to: TrialState, *, fence: int | None = None, **fields: Any) -> Trial:
    """Move a trial to the state `to`, with the guarantees of `move`."""
    with transaction.atomic():
        body = move_trial_unlogged(trial, to, fence=fence, **fields)
        events.append(trial.job.root_id_or_self, [body])
        hints.send("schedule", job=trial.job_id)
    return trial


def move_trials(search: Job, trials: Iterable[Trial], to: TrialState) -> None:
    """Move several trials in a search to the state `to`, all or none, with the guarantees of `move`."""
    with transaction.atomic():
        bodies = [move_trial_unlogged(trial, to) for trial in trials]
        if bodies:
            events.append(search.root_id_or_self, bodies)
            hints.send("schedule", job=search.pk)


def _continuation_error(until: int, error: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a completed trial's error if its continuation failed, or None if it was stopped."""
    if error is None:
        return None
    return error | {
        "message": f"it keeps its earlier result: continuing to epoch {until} failed: {error['message']}"
    }


def move_trial_unlogged(trial: Trial, to: TrialState, *, fence: int | None = None, **fields: Any) -> Event:
    """Move a trial to the state `to` inside the caller's transaction, without appending its event.

    A continued trial returns to `completed` when it is stopped or fails, since it was completed before.

    Returns:
        The event, which the caller appends.

    Raises:
        StaleState: the row's state does not allow the transition, or the fencing token is old. Nothing was
            changed.
    """
    if to in TRIAL_FINAL and "finished" not in fields:
        fields["finished"] = clock.now()
    # The requested transition must be allowed, also if the state becomes `completed` below.
    earlier = [str(state) for state in trial_may_follow(to)]
    condition = f"id = %s AND {one_of('state', len(earlier))}"
    parameters: list[int | str] = [trial.pk, *earlier]
    is_completed_again = False
    if trial.until is not None and to in (TrialState.FAILED, TrialState.STOPPED, TrialState.PRUNED):
        is_completed_again = True
        to = TrialState.COMPLETED
        fields |= {"error": _continuation_error(trial.until, fields.get("error"))}
    if fence is not None:
        condition, parameters = f"{condition} AND attempt = %s", [*parameters, fence]
    if not update_rows(Trial, {"state": to} | fields, condition, parameters):
        state = Trial.objects.values_list("state", flat=True).get(pk=trial.pk)
        raise StaleState(f"trial {trial.number} is {state}; it cannot become {to} now")
    if is_completed_again:
        trial.executions.update(state=TrialState.COMPLETED)
    for name, value in ({"state": to} | fields).items():
        setattr(trial, name, value)
    body = events.event("trial", trial.job, attempt=trial.attempt, trial=trial.number, state=str(to))
    if "score" in fields:
        body |= {"score": trial.score, "std": trial.std}
    return body
