"""Computes progress and remaining time for the steps that follow a root job.

A retraining is expected to take the epochs that trials needed; another step the median duration of earlier
ones, or else a multiple of a runner's start time. A running step counts by its own reports as soon as they
are meaningful.
"""

from collections.abc import Iterable
from statistics import median

from jobs import clock
from jobs.kinds import KINDS, PIPELINE
from jobs.models import Job
from jobs.queries.runs import steps
from jobs.queries.search import outcomes
from jobs.queries.search.trial_durations import TrialDurations, seconds_between
from jobs.spec.experiment import ExperimentSpec
from jobs.states import FINAL, JobState

USUAL_START_SECONDS = 3.0
"""How long a runner's start takes if it was not measured."""

RETRAIN_EPOCHS_FACTOR = 1.2
"""A retraining's best epoch relative to a trial's. It is later, because the patience is longer."""

MEANINGFUL_SHARE = 0.1
"""A task's own speed is used once this share is done: its start includes imports and compilation."""

NEWEST = 9
"""A later step's duration is the median over so many of the newest jobs with its kind."""


def completed_fraction(root: Job, task_fraction: float) -> float:
    """Return how much of a root job and its later steps is completed, as a fraction.

    Each later step counts as much as one trial. The weights depend on no measured time, so that the fraction
    does not fall when an estimate changes.

    Args:
        root: a job; one that is no root has no later steps.
        task_fraction: the completed fraction in its own task.
    """
    if root.revision is None or root.parent_id is not None:
        return task_fraction
    later = [kind for kind in steps.steps_of(root) if kind != root.kind]
    if not later:
        return task_fraction
    weight = max(outcomes.trials_planned(root), 1) if root.facts.has_trials else int(bool(root.facts.engine))
    completed = sum(_fraction_of_step(child) for child in root.children.all() if child.kind in later)
    return (task_fraction * weight + min(completed, len(later))) / (weight + len(later))


def _fraction_of_step(step: Job) -> float:
    if step.state in FINAL:
        return 1.0
    done, total = step.progress.get("done", 0), step.progress.get("total", 0)
    return min(done / total, 1.0) if total else 0.0


def task_seconds_left(job: Job) -> float | None:
    """Estimate a running task's remaining seconds from its mean speed.

    None if unknown: nothing was reported yet, or the task takes longer than its last report suggested.
    """
    done, total = job.progress.get("done", 0), job.progress.get("total", 0)
    if not done or not total or job.started is None:
        return None
    reported = float(job.progress.get("time", 0))
    expected = (reported - job.started.timestamp()) / float(done) * float(total - done)
    remaining = expected - max(clock.estimate().timestamp() - reported, 0.0)
    return remaining if remaining > 0 else None


def later_seconds_left(
    root: Job, spec: ExperimentSpec, durations: TrialDurations | None, concurrency: int
) -> float | None:
    """Estimate the remaining seconds for a root's later steps; 0 without any.

    None if the last one takes longer than usual: a number that stays the same would be wrong.
    """
    usual = {kind: starts for kind in PIPELINE if (starts := KINDS[kind].usual_starts) is not None}
    estimates = [_retraining_seconds(root, spec, durations, concurrency)]
    estimates += [_step_seconds(root, spec, kind, starts, concurrency) for kind, starts in usual.items()]
    estimated = [seconds for seconds in estimates if seconds is not None]
    remaining = sum(estimated)
    return None if len(estimated) < len(estimates) and remaining == 0 else remaining


def _retraining_seconds(
    root: Job, spec: ExperimentSpec, durations: TrialDurations | None, concurrency: int
) -> float | None:
    if spec.search is None or spec.after.retrain is None or durations is None:
        return 0.0
    retrain = spec.after.retrain
    best = durations.best_epoch * RETRAIN_EPOCHS_FACTOR
    epochs = min(best + retrain.patience, retrain.epochs_cap) + best * retrain.epochs_factor
    trained = [child for child in root.children.all() if child.facts.trains]
    return _remaining_seconds(trained, retrain.top, epochs * durations.seconds_per_epoch, concurrency)


def _step_seconds(
    root: Job, spec: ExperimentSpec, kind: str, starts: float, concurrency: int
) -> float | None:
    planned = KINDS[kind].planned(spec)
    begun = [child for child in root.children.all() if child.kind == kind]
    if planned <= sum(child.state in FINAL for child in begun):
        return 0.0
    return _remaining_seconds(begun, planned, _usual_seconds(kind, starts, root), concurrency)


def _remaining_seconds(begun: Iterable[Job], planned: int, usual: float, concurrency: int) -> float | None:
    """Estimate the remaining seconds for jobs that usually take `usual`. None if all are overdue.

    Args:
        begun: those that exist.
        planned: how many there will be.
        usual: their usual duration in seconds.
        concurrency: how many can run at the same time.
    """
    open_count = planned - sum(job.state in FINAL for job in begun)
    running = [job for job in begun if job.state == JobState.RUNNING and job.started is not None]
    seconds_left = [seconds for job in running if (seconds := _job_seconds_left(job, usual)) is not None]
    waiting = max(open_count - len(running), 0)
    if running and not seconds_left and not waiting:
        return None
    return (sum(seconds_left) + waiting * usual) / max(min(concurrency, len(seconds_left) + waiting), 1)


def _job_seconds_left(job: Job, usual: float) -> float | None:
    """Estimate a running job's remaining seconds: from its speed, else its usual duration."""
    share = _fraction_of_step(job)
    if MEANINGFUL_SHARE <= share < 1 and (remaining := task_seconds_left(job)) is not None:
        return remaining
    elapsed = (clock.estimate() - job.started).total_seconds() if job.started else 0.0
    return usual - elapsed if elapsed < usual else None


def _usual_seconds(kind: str, starts: float, root: Job) -> float:
    """Return a kind's median recent duration. Without one, the time for `starts` runner starts."""
    latest = Job.objects.filter(
        kind=kind, state=JobState.COMPLETED, started__isnull=False, finished__isnull=False
    ).order_by("-finished")
    # Only these columns: results may be large.
    times = latest.values_list("started", "finished")[:NEWEST]
    durations = [seconds_between(started, finished) for started, finished in times]
    if durations:
        return median(durations)
    first = root.attempts.filter(claimed__isnull=False).order_by("number").first()
    start = seconds_between(first.claimed, root.started) if first is not None else 0.0
    # A shorter start is that of a warm runner, and the next job may not get one.
    return starts * (start if start >= 1.0 else USUAL_START_SECONDS)
