"""What every kind of job declares: its payload, its result, and the facts that other modules ask for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict

from jobs.contracts.after import Registered
from jobs.contracts.base import Frozen
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.search import Objective, SearchSpec
from jobs.contracts.search_space import Value
from jobs.contracts.task_parts import Task

Tab = Literal["overview", "trials", "charts", "evaluation", "logs", "system", "artifacts", "attempts", "spec"]
TABS: tuple[Tab, ...] = (
    "overview", "charts", "evaluation", "logs", "system", "artifacts", "attempts", "spec",
)  # fmt: skip
"""The tabs that a job's page has, whatever its kind; those without content are left out."""

type Figures = dict[str, Any]
"""Metrics by name. Each is a number, or an object whose `value` is one."""


class ChosenTrials(NamedTuple):
    """Trials of a search by their numbers."""

    search: int
    numbers: tuple[int, ...]


class Payload(Frozen):
    """What a job is to do, beside its revision's spec: the content of `Job.payload`.

    A kind adds its own fields and overrides the methods whose default does not hold for it.

    Attributes:
        dataset_version: the primary key of the data that it reads.
        failing: why it fails, while workers still hold parts of it.
        task_done: whether its own task is completed. A root may still wait for the steps after it.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    dataset_version: int | None = None
    failing: dict[str, Any] | None = None
    task_done: bool = False

    def changed(self, **fields: Any) -> Self:
        """Return a copy with other values in some fields, validated."""
        return self.model_validate({**dict(self), **fields})

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that the database keeps: fields that have their default are left out."""
        fields = type(self).model_fields
        silent = {
            field.alias or name for name, field in fields.items() if getattr(self, name) == field.default
        }
        return {key: value for key, value in self.model_dump(mode="json").items() if key not in silent}

    def search_spec(self, spec: ExperimentSpec | None) -> SearchSpec | None:
        """Return the search that the job is part of; None where there is none."""
        return spec.search if spec is not None else None

    def objective(self, spec: ExperimentSpec | None) -> Objective:
        """Return what its models are ranked by; validation loss where there is no search."""
        search = self.search_spec(spec)
        return search.objective if search is not None else Objective()

    def trials_planned(self, spec: ExperimentSpec | None) -> int:
        """Return how many trials its algorithm will make, if nothing ends it before."""
        del spec
        return 0

    def followed(self, spec: ExperimentSpec) -> ExperimentSpec:
        """Return the spec whose `after` says what follows the job."""
        return spec

    def chosen_trials(self) -> ChosenTrials | None:
        """Return the trials of another search that it retrains; None where there are none."""
        return None

    def hyperparameters(self) -> dict[str, Value]:
        """Return the values that it applies to the spec."""
        return {}

    def lineage(self) -> dict[str, Any]:
        """Return what the lineage of its model says of it."""
        return {}


class Result(BaseModel):
    """What `run` of a kind's engine function returns: the content of `Job.results`.

    Fields that the kind does not name are kept as they are.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    metrics: dict[str, Figures] = {}
    test_rows: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that the database keeps: what was set, and nothing else."""
        return self.model_dump(mode="json", exclude_unset=True)

    def with_fields(self, **fields: Any) -> Self:
        """Return a copy with further fields."""
        return self.model_validate({**self.to_json(), **fields})


def never(spec: ExperimentSpec) -> int:
    """Plan no jobs of a kind: experiments do not lead to it."""
    del spec
    return 0


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the rest of Trainyard may ask about a kind of job.

    Attributes:
        name: what `Job.kind` and `Task.kind` hold.
        title: what people call such a job.
        payload: the model of `Job.payload`.
        result: the model of `Job.results`.
        task: what a runner is given; None where no runner works for it.
        engine: the dotted path of the engine function that runs the task.
        needs_jax: whether that function needs Keras and JAX, whose imports take seconds.
        public_as: what REST and pages call the kind, if not by its name.
        planned: how many jobs of the kind an experiment leads to.
        first_step: for a root whose end leads on, the first kind of `PIPELINE` among its own steps.
        has_trials: whether attempts hold trials of it; else they hold the whole job.
        trial_waits_for: what a queued trial of a running job waits for, if not for the scheduler.
        trains: whether it trains one model epoch by epoch.
        evaluates: whether it measures a model on test rows.
        candidate: under which name its metrics stand in a root's results.
        registered_as: as what its model is registered.
        keeps_result: whether the job's row keeps the result; else another row has it.
        usual_starts: how long it usually takes, in starts of a runner; None where its epochs tell.
        tabs: the tabs of its page, in order.
        listed: whether the list of jobs shows it unasked.
        retry_refusal: why such a job is never retried; empty where it is.
        submittable: whether people may submit it by itself, with its payload as input.
    """

    name: str
    title: str
    payload: type[Payload] = Payload
    result: type[Result] = Result
    task: type[Task] | None = None
    engine: str = ""
    needs_jax: bool = True
    public_as: str = ""
    planned: Callable[[ExperimentSpec], int] = never
    first_step: str = ""
    has_trials: bool = False
    trial_waits_for: str = ""
    trains: bool = False
    evaluates: bool = False
    candidate: str = ""
    registered_as: Registered | None = None
    keeps_result: bool = True
    usual_starts: float | None = None
    tabs: tuple[Tab, ...] = TABS
    listed: bool = True
    retry_refusal: str = ""
    submittable: bool = False

    @property
    def public_name(self) -> str:
        """Return what REST and pages call the kind."""
        return self.public_as or self.name
