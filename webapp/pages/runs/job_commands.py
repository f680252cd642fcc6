"""Decides which commands a job's page offers."""

from jobs.models import Job
from jobs.queries.search import trials
from jobs.states import FINAL, Desired, JobState

RUNNING_AGAIN = {"resume", "retry", "clone"}
"""Commands that need the right to run the code of a job."""


def accepted_commands(row: Job, *, may_run: bool) -> set[str]:
    """Return the commands that a user may give a job in its state.

    Args:
        row: the job.
        may_run: whether the user may run the job's code.
    """
    return _commands_in_state(row) - (set() if may_run else RUNNING_AGAIN)


def _commands_in_state(row: Job) -> set[str]:
    state, pausing = JobState(row.state), row.desired == "paused"
    if state in FINAL:
        # The stopped trials of a finished search are not run again.
        failed = state != JobState.COMPLETED or (
            not row.payload.finishing and row.trials.filter(state__in=("failed", "stopped")).exists()
        )
        return {"clone", "retry"} if failed else {"clone"}
    commands = {"stop", "kill", "clone"}
    if pausing:
        # A step of a paused job resumes with that job; `control.resume` refuses it alone.
        commands |= {"resume"} if row.parent is None or row.parent.desired == "running" else set()
    elif state in (JobState.STARTING, JobState.RUNNING):
        commands.add("pause")
    return commands - ({"stop"} if state == JobState.STOPPING else set())


def may_revise(row: Job) -> bool:
    """Return whether the search can be changed now."""
    # An external search has no experiment.
    if row.revision_id is None:
        return False
    return row.desired in (Desired.RUNNING, Desired.PAUSED) and trials.accepts_trials(row)
