"""Removes checkpoints from which nothing will resume.

Their folders are deleted here, and on each machine that has one by `workers.node.checkpoints`; their
copies in object storage by `checkpoint_copies`.
"""

import random
import time
from collections.abc import Iterator

from jobs import clock
from jobs.actions.isolation import for_each
from jobs.models import Checkpoint, Job
from jobs.queries.search import outcomes
from jobs.queries.storage import ownership
from jobs.runner_files import remove_folder
from jobs.states import FINAL, TRIAL_FINAL, JobState, TrialState
from jobs.store import store

KEEP_NEWEST = 2
"""How many checkpoints open work keeps: if the newest is damaged, the one before it is restored."""
BEST_TRIALS_KEPT = 5
SWEEP_SECONDS = 2.0
"""The scheduler waits for a sweep, so each has a time limit."""
TRIAL_RETRIED = (TrialState.FAILED, TrialState.STOPPED)
"""Final states in which a user may resume a trial from its newest checkpoint."""


def remove_superfluous() -> int:
    """Remove superfluous checkpoints: all from finished work, and all but the newest two from open work.

    A stopped or failed job keeps its newest checkpoint, since a retry resumes from it, and so do the best
    trials. A trial that waits at a rung is open work. The call ends after `SWEEP_SECONDS`; the next call
    continues.

    Returns:
        From how many jobs checkpoints were removed.
    """
    deadline = time.monotonic() + SWEEP_SECONDS
    # The folders have the numbers of jobs, which another installation's jobs have too.
    if ownership.recent_problem() is not None:
        return 0
    return for_each(_jobs_with_checkpoints(deadline), lambda job: _thin_out(job, deadline))


def thin_out(job: Job) -> int:
    """Remove one job's superfluous checkpoints, in at most `SWEEP_SECONDS`. Return how many."""
    return _thin_out(job, time.monotonic() + SWEEP_SECONDS)


def _jobs_with_checkpoints(deadline: float) -> Iterator[Job]:
    """Yield the jobs that hold checkpoints, open jobs first, since they write more."""
    rows = Job.objects.filter(pk__in=Checkpoint.objects.kept().values("job"))
    jobs = list(rows.values_list("pk", "state"))
    # Every finished search keeps some checkpoints, so one call may not reach all jobs. In a random order each
    # of them is reached eventually.
    random.shuffle(jobs)
    for pk, _ in sorted(jobs, key=lambda row: row[1] in FINAL):
        if time.monotonic() > deadline:
            return
        if (job := Job.objects.select_related("revision").filter(pk=pk).first()) is not None:
            yield job


def _thin_out(job: Job, deadline: float) -> int:
    """Remove a job's superfluous checkpoints until the deadline. Return how many."""
    removed = 0
    for checkpoint in _superfluous_checkpoints(job):
        if time.monotonic() > deadline:
            break
        removed += _remove_checkpoint(checkpoint)
    return removed


def _superfluous_checkpoints(job: Job) -> list[Checkpoint]:
    """List the checkpoints beyond the number that each execution keeps.

    The newest one with a copy in object storage is kept beside them: other machines can resume from no other.
    """
    checkpoint_counts: dict[tuple[int | None, int | None], int] = {}
    copied: set[tuple[int | None, int | None]] = set()
    superfluous = []
    best = best_trials(job)
    for checkpoint in job.checkpoints.kept().select_related("trial").order_by("-pk"):
        key = (checkpoint.trial_id, checkpoint.execution)
        checkpoint_counts[key] = checkpoint_counts.get(key, 0) + 1
        number = number_to_keep(job, checkpoint, best)
        is_newest_copy = checkpoint.stored is not None and key not in copied
        if is_newest_copy:
            copied.add(key)
        if checkpoint_counts[key] > number and not (number and is_newest_copy):
            superfluous.append(checkpoint)
    return superfluous


def best_trials(job: Job) -> set[int]:
    """Return the keys of the trials that keep a checkpoint after their end."""
    return set(outcomes.best_trials(job, limit=BEST_TRIALS_KEPT).values_list("pk", flat=True))


def number_to_keep(job: Job, checkpoint: Checkpoint, best: set[int]) -> int:
    """Return how many of its newest checkpoints an execution keeps.

    Args:
        job: the job.
        checkpoint: any checkpoint of the execution.
        best: the job's best trials, by key.
    """
    if checkpoint.trial is not None and checkpoint.trial.state in TRIAL_FINAL:
        return int(checkpoint.trial_id in best or checkpoint.trial.state in TRIAL_RETRIED)
    if job.state in FINAL:
        return 0 if job.state == JobState.COMPLETED else 1
    return KEEP_NEWEST


def _remove_checkpoint(checkpoint: Checkpoint) -> bool:
    rows = Checkpoint.objects.filter(pk=checkpoint.pk)
    # Only if the trial has not changed: it may have been continued since it was read.
    if checkpoint.trial is not None:
        rows = rows.filter(trial__state=checkpoint.trial.state)
    # The row comes first: a crash in between leaves a stray folder, never a row without its folder.
    if not rows.update(removed=clock.now()):
        return False
    # Runners write above it, too: they may have replaced a folder on the way by a link.
    remove_folder(store().checkpoint_root, checkpoint.folder)
    return True
