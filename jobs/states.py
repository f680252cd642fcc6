"""Defines the states of jobs, trials and attempts, sets of states, and the allowed transitions."""

from enum import StrEnum


class JobState(StrEnum):
    """The states of a job."""

    DRAFT = "draft"
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    RETRYING = "retrying"
    STOPPING = "stopping"
    STOPPED = "stopped"
    COMPLETED = "completed"
    FAILED = "failed"
    LOST = "lost"


class Desired(StrEnum):
    """The state that a user requested for a job; workers follow as soon as possible."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    KILLED = "killed"


class TrialState(StrEnum):
    """The states of a trial."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    PRUNED = "pruned"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"


class AttemptState(StrEnum):
    """The states of an attempt: assigned to a worker, running after the worker claimed it, ended."""

    ASSIGNED = "assigned"
    RUNNING = "running"
    ENDED = "ended"


class Outcome(StrEnum):
    """How an attempt ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    PAUSED = "paused"
    STOPPED = "stopped"
    KILLED = "killed"
    LOST = "lost"


TIMED_OUT = "max_minutes"
"""The reason of the state event, and the code of the error, when a job's time limit ends it."""

J = JobState
FINAL = frozenset({J.STOPPED, J.COMPLETED, J.FAILED})
ACTIVE = frozenset({J.STARTING, J.RUNNING, J.STOPPING})
WAITING = frozenset({J.QUEUED, J.RETRYING})
OPEN = frozenset(JobState) - FINAL - {J.DRAFT}
PLACEABLE = OPEN - {J.PAUSED, J.STOPPING}
"""States in which jobs, or their trials, may wait for slots."""

TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    J.DRAFT: frozenset({J.QUEUED}),
    J.QUEUED: frozenset({J.STARTING, J.STOPPED}),
    # A search needs no slot, so it may be stopped, fail or complete before its first trial starts.
    J.STARTING: frozenset(
        {J.RUNNING, J.PAUSED, J.RETRYING, J.STOPPING, J.STOPPED, J.COMPLETED, J.FAILED, J.LOST}
    ),
    J.RUNNING: frozenset({J.PAUSED, J.RETRYING, J.STOPPING, J.STOPPED, J.COMPLETED, J.FAILED, J.LOST}),
    J.PAUSED: frozenset({J.QUEUED, J.STOPPED}),
    J.LOST: frozenset({J.RETRYING, J.FAILED}),
    J.RETRYING: frozenset({J.STARTING, J.STOPPED}),
    J.STOPPING: frozenset({J.STOPPED}),
    # Final jobs are queued again by a retry. A completed root is, too, if one of its steps is retried.
    J.STOPPED: frozenset({J.QUEUED}),
    J.COMPLETED: frozenset({J.QUEUED}),
    J.FAILED: frozenset({J.QUEUED}),
}  # fmt: skip

T = TrialState
TRIAL_FINAL = frozenset({T.PRUNED, T.COMPLETED, T.FAILED, T.STOPPED})

TRIAL_TRANSITIONS: dict[TrialState, frozenset[TrialState]] = {
    # If a task fails before it starts, its first trial fails.
    T.QUEUED: frozenset({T.RUNNING, T.PAUSED, T.STOPPED, T.FAILED}),
    T.RUNNING: frozenset({T.QUEUED, T.PAUSED, T.PRUNED, T.COMPLETED, T.FAILED, T.STOPPED}),
    # A trial paused at a rung is pruned when it can no longer be promoted.
    T.PAUSED: frozenset({T.QUEUED, T.STOPPED, T.PRUNED}),
    # Pruning is final: a user can neither retry nor continue a pruned trial.
    T.PRUNED: frozenset(),
    # Users may continue the training of a completed trial, and retry a failed or stopped one.
    T.COMPLETED: frozenset({T.QUEUED}),
    T.FAILED: frozenset({T.QUEUED}),
    T.STOPPED: frozenset({T.QUEUED}),
}


def may_follow(to: JobState) -> frozenset[JobState]:
    """Return the states from which a job may change to `to`."""
    return frozenset(state for state, following in TRANSITIONS.items() if to in following)


def trial_may_follow(to: TrialState) -> frozenset[TrialState]:
    """Return the states from which a trial may change to `to`."""
    return frozenset(state for state, following in TRIAL_TRANSITIONS.items() if to in following)
