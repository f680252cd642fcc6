"""What is done for the jobs of each kind. Every kind registers its own actions when the app starts."""

from typing import Any

from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.task_parts import Task
from jobs.errors import BadInput, Conflict
from jobs.kinds.base import Payload, Result
from jobs.models import Attempt, Job, Project, User

type JobError = dict[str, Any]


class KindActions[P: Payload, R: Result]:
    """The actions of a kind. Each method may be left as it is.

    Every method is called inside a transaction but `build_task`; `children` and `advance` may be called again
    after a crash, and must not do twice what they did.
    """

    def accept(self, payload: P, *, project: Project, by: User) -> P:
        """Check what somebody submits by itself, and complete it; no kind takes anything unasked.

        Raises:
            BadInput: it names things that are not there, or not for `by`; pointers start at `/payload`.
        """
        del project, by
        raise BadInput(f"a {type(payload).__name__} cannot be submitted by itself")

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> Task:
        """Return what a runner is to do. `common` has the fields that every task has."""
        del common
        raise Conflict(f"no runner works for jobs of kind {attempt.job.public_kind}")

    def on_done(self, job: Job, result: R) -> None:
        """Hand the result of a completed job to the rows that wait for it."""

    def on_failed(self, job: Job, error: JobError) -> None:
        """Tell the rows that wait for a job's result that there will be none."""

    def advance(self, root: Job) -> None:
        """Do the next step of an open root. One that is a single task ends by its result."""

    def children(self, root: Job, spec: ExperimentSpec) -> list[Job]:
        """Return the jobs of this step under a root, in order; those that are missing are made."""
        del root, spec
        return []

    def clone(self, job: Job, *, by: User) -> Job:
        """Queue a root of this kind once more."""
        del by
        raise Conflict(f"job {job.pk} ({job.public_kind}) has no experiment of its own to run again")


_REGISTERED: dict[str, KindActions[Any, Any]] = {}


def register(kind: str, actions: KindActions[Any, Any]) -> None:
    """Name the actions of a kind."""
    _REGISTERED[kind] = actions


def actions_of(job: Job) -> KindActions[Any, Any]:
    """Return the actions of a job's kind."""
    return _REGISTERED[job.kind]


def actions_for(kind: str) -> KindActions[Any, Any]:
    """Return the actions of a kind by its name."""
    return _REGISTERED[kind]
