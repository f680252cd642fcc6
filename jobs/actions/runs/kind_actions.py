"""Defines the base class for a kind's actions, and their registry, which is filled when the app starts."""

from typing import Any

from jobs.errors import BadInput, Conflict
from jobs.kinds.base import Payload, Result
from jobs.messages.task import Task
from jobs.models import Attempt, Job, Project, User
from jobs.spec.experiment import ExperimentSpec

type JobError = dict[str, Any]


class ResultRefused(Exception):
    """A task's result cannot be used. The job fails with the error."""

    def __init__(self, error: JobError) -> None:
        super().__init__(error["message"])
        self.error = error


class KindActions[P: Payload, R: Result]:
    """A kind's actions. Each kind overrides the methods that it needs.

    Every method except `build_task` is called inside a transaction. `children` and `advance` may be called
    again after a crash, so they must be idempotent.
    """

    def accept(self, payload: P, *, project: Project, by: User) -> P:
        """Check and complete a payload that a user submits directly. Refused by default.

        Raises:
            BadInput: it refers to objects that `by` cannot see or that do not exist; pointers start at
                `/payload`.
        """
        del project, by
        raise BadInput(f"a {type(payload).__name__} cannot be submitted directly")

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> Task:
        """Return an attempt's task. `common` has the fields that every task has."""
        del common
        raise Conflict(f"jobs of kind {attempt.job.facts.noun} have no task for a runner")

    def on_done(self, job: Job, result: R) -> None:
        """Store a completed job's result in the rows that wait for it.

        Raises:
            ResultRefused: it cannot be used; nothing was changed.
        """

    def on_failed(self, job: Job, error: JobError) -> None:
        """Mark the rows that wait for a job's result as failed."""

    def advance(self, root: Job) -> None:
        """Do an open root's next step. A root with a single task ends with its result."""

    def children(self, root: Job, spec: ExperimentSpec) -> list[Job]:
        """Return the jobs for this step under a root, in order. Missing ones are created."""
        del root, spec
        return []

    def clone(self, job: Job, *, by: User, registers: bool) -> Job:
        """Queue a copy of a root job, which registers the versions in its spec or none."""
        del by, registers
        raise Conflict(f"job {job.pk} ({job.facts.noun}) has no experiment of its own and cannot run again")


_REGISTERED: dict[str, KindActions[Any, Any]] = {}


def register_actions(kind: str, actions: KindActions[Any, Any]) -> None:
    """Register a kind's actions."""
    _REGISTERED[kind] = actions


def actions_of(job: Job) -> KindActions[Any, Any]:
    """Return the actions for a job's kind."""
    return _REGISTERED[job.kind]


def actions_for(kind: str) -> KindActions[Any, Any]:
    """Return the actions for a kind by its name."""
    return _REGISTERED[kind]
