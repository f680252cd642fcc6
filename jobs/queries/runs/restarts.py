"""Describes why a job's attempts were ended, and from where their work was restarted."""

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

from jobs.answers.runs.jobs import ResumptionOut
from jobs.models import Attempt, Checkpoint, Job, Trial
from jobs.states import FINAL, TRIAL_FINAL, Outcome

SHOWN = 3
"""The newest losses are shown; all are among the attempts."""
NEVER_RAN = ("unclaimed", "sandbox_refused")
"""The error codes if an attempt ended before it began."""


class Resumption(NamedTuple):
    """A training that was continued from a checkpoint.

    Attributes:
        name: the trial and its execution, in words; empty for a job without trials.
        epoch: epochs that the checkpoint had completed.
        saved: SHA-256 of the checkpoint's weights, as the process that wrote it recorded it.
        loaded: SHA-256 of the weights with which the training continued.
    """

    name: str
    epoch: int
    saved: str
    loaded: str


class Restart(NamedTuple):
    """An attempt that was ended by something else than its task, a person or its result.

    Attributes:
        attempt: its number.
        trials: the trials that it held, by number; empty for other jobs.
        cause: a sentence.
        restarted: a sentence about the attempt that continues the work; empty if none does.
        ended: when the attempt ended.
        resumed: the trainings that the next attempt continued, with their weights; at most `SHOWN`.
    """

    attempt: int
    trials: tuple[int, ...]
    cause: str
    restarted: str
    ended: dt.datetime | None
    resumed: tuple[Resumption, ...] = ()


def restarts_of_job(job: Job) -> list[Restart]:
    """Return a job's newest lost attempts, newest first."""
    lost = job.attempts.filter(outcome=Outcome.LOST).exclude(error__code__in=NEVER_RAN).order_by("-number")
    rows = lost.prefetch_related("trials")[:SHOWN]
    return [_restart_out(row, job, sorted(row.trials.all(), key=lambda trial: trial.number)) for row in rows]


def restarts_of_trial(trial: Trial) -> list[Restart]:
    """Return a trial's newest lost attempts, newest first."""
    lost = trial.attempts.filter(outcome=Outcome.LOST).exclude(error__code__in=NEVER_RAN)
    return [_restart_out(row, trial.job, [trial]) for row in lost.order_by("-number")[:SHOWN]]


def _restart_out(attempt: Attempt, job: Job, trials: Sequence[Trial]) -> Restart:
    message = str((attempt.error or {}).get("message") or "its worker was lost").strip()
    cause = message[:1].upper() + message[1:] + ("" if message.endswith((".", "!", "?")) else ".")
    numbers = tuple(trial.number for trial in trials)
    later = job.attempts.filter(number__gt=attempt.number)
    if trials:
        later = later.filter(trials__in=trials)
    following = later.order_by("number").first()
    restarted = _restarted_trials(following, job, trials)
    return Restart(
        attempt.number, numbers, cause, restarted, attempt.ended, _resumed_trainings(following, numbers)
    )


def _resumed_trainings(following: Attempt | None, trials: Sequence[int]) -> tuple[Resumption, ...]:
    """Return these trials' trainings that the next attempt continued from a checkpoint."""
    rows = [] if following is None else following.record.get("resumed", [])
    return tuple(
        Resumption(_name(row), row["epoch"], row["saved"], row["loaded"])
        for row in rows
        if not trials or row["trial"] in trials
    )[:SHOWN]


def _name(row: ResumptionOut) -> str:
    return "" if row["trial"] is None else f"trial {row['trial']}, execution {row['execution']}"


def _restarted_trials(following: Attempt | None, job: Job, trials: Sequence[Trial]) -> str:
    # The record is written when its runner has begun.
    if following is not None and following.record:
        if (step := following.resumed_from) is None:
            return f"Attempt {following.number} began from the start."
        return f"Attempt {following.number} resumed {_describe_position(step, following, job, trials)}."
    over = trials[0].state in TRIAL_FINAL if len(trials) == 1 else job.state in FINAL
    return "" if over else "It will be restarted from its newest checkpoint."


def _describe_position(step: int, following: Attempt, job: Job, trials: Sequence[Trial]) -> str:
    """Describe the checkpoint at `step` from which the attempt `following` resumed."""
    rows = Checkpoint.objects.filter(job=job, step=step, attempt__lt=following.number)
    if trials:
        rows = rows.filter(trial__in=trials)
    epoch = rows.order_by("-pk").values_list("epoch", flat=True).first()
    return f"from step {step}" if epoch is None else f"from epoch {epoch}"
