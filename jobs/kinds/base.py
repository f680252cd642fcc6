"""Defines the base classes for a job kind: its payload, its result, and its facts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field

from jobs.messages.reports.base import ModelReport
from jobs.messages.reports.quantization import CallTime, Which
from jobs.messages.task import Task
from jobs.messages.training import Measured
from jobs.spec.base import Frozen
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.after import Registered
from jobs.spec.sections.monitors import monitors_of_training
from jobs.spec.sections.search import Objective, SearchSpec
from jobs.spec.space.search_space import Value, Values

Tab = Literal[
    "overview",
    "trials",
    "charts",
    "report",
    "evaluation",
    "layers",
    "logs",
    "system",
    "artifacts",
    "attempts",
    "spec",
]
TABS: tuple[Tab, ...] = (
    "overview", "charts", "report", "evaluation", "layers", "logs", "system", "artifacts", "attempts", "spec",
)  # fmt: skip
"""All tabs on a job's page. Pages leave out a tab without content."""

Owner = Literal["dataset_version", "version", "promotion"]
"""Payload fields that name a row to which a job may belong."""

type Figures = dict[str, Any]
"""Metrics by name. Each is a number, or an object whose `value` is one."""


def value_of(figure: Any) -> Any:
    """Return the value of a metric in `Figures`: the number, or that of an object with an interval."""
    return figure.get("value") if isinstance(figure, dict) else figure


class ChosenTrial(Frozen):
    """A trial by its number, with a copy of its values: they remain when the trial's row is deleted."""

    trial: int = Field(ge=1)
    values: dict[str, Value]


class SourceTrial(Frozen):
    """A trial of another search, whose values a separate experiment retrains."""

    search: int
    trial: int = Field(ge=1)


class ChosenTrials(NamedTuple):
    """Trials of a search, sorted by number."""

    search: int
    trials: tuple[ChosenTrial, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """Return the trials' numbers."""
        return tuple(trial.trial for trial in self.trials)


class LargerModel(NamedTuple):
    """The model of which a job makes a smaller one.

    Attributes:
        job: the primary key of the job that made it.
        artifact: its file; empty: the newest model of the job.
        mode: the format; empty: that of the experiment's step.
    """

    job: int
    artifact: str
    mode: str


class CallTimes(NamedTuple):
    """The times of calls that a job has measured.

    Attributes:
        by_model: by `original` or `quantized`, then by the batch size.
        hardware: the machine.
    """

    by_model: Mapping[Which, Mapping[str, CallTime]]
    hardware: str


class Payload(Frozen):
    """The job's input beside its revision's spec, stored in `Job.payload`.

    A kind adds its own fields and overrides methods where the default is wrong for it.

    Attributes:
        dataset_version: the primary key of the dataset version that the job reads.
        failing: the error with which the job fails once its open attempts have ended.
        task_done: whether the job's own task is completed. A root may still wait for its later steps.
        finishing: whether a user or its time limit has ended the search early. It stays true; no trial runs
            any more.
        passes_batch_size: whether the own `fit` of a class gets the size of a batch. It does not in jobs that
            an earlier release has submitted, since all trainings of a search shall be alike.
        device_bytes: the plan's estimate for the largest model of the experiment on each of its devices, in
            bytes; None if it is unknown before the model is built.
        registers: whether the job registers the versions that its spec names; a repetition need not.
    """

    # Aliases are the keys of rows that were stored before a field was renamed.
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    names_all_code: ClassVar[bool] = False
    """Whether `code_digest` is all code that the job executes: it runs no code from its spec."""

    dataset_version: int | None = None
    failing: dict[str, Any] | None = None
    task_done: bool = False
    finishing: bool = False
    passes_batch_size: bool = False
    device_bytes: int | None = None
    registers: bool = True

    def changed(self, **fields: Any) -> Self:
        """Return a copy with other values in some fields, validated."""
        return self.model_validate({**dict(self), **fields})

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that the database keeps: fields that have their default are left out."""
        fields = type(self).model_fields
        unset = {
            field.alias or name for name, field in fields.items() if getattr(self, name) == field.default
        }
        return {key: value for key, value in self.model_dump(mode="json").items() if key not in unset}

    def search_spec(self, spec: ExperimentSpec | None) -> SearchSpec | None:
        """Return the search to which the job belongs, or None."""
        return spec.search if spec is not None else None

    def objective(self, spec: ExperimentSpec | None) -> Objective:
        """Return the objective that ranks the job's models: the measure of its epochs without a search."""
        search = self.search_spec(spec)
        if search is not None or spec is None:
            return search.objective if search is not None else Objective()
        retrain, early = self.spec_with_steps(spec).after.retrain, spec.fit.early_stopping
        best = monitors_of_training(None, retrain, early).best
        return Objective(metric=best.metric, direction=best.direction)

    def whole_values(self, values: Values) -> dict[str, Value]:
        """Return a trial's values, completed by those of hyperparameters that were found after it began."""
        return dict(values)

    def trials_planned(self, spec: ExperimentSpec | None) -> int:
        """Return how many trials the algorithm will create if nothing ends the search earlier."""
        del spec
        return 0

    def spec_with_steps(self, spec: ExperimentSpec) -> ExperimentSpec:
        """Return the spec whose `after` defines the steps that follow the job: by default the job's own."""
        return spec if self.registers else spec.unregistered()

    def chosen_trials(self) -> ChosenTrials | None:
        """Return the trials that the job retrains from another search, or None."""
        return None

    def member_names(self) -> dict[int, str]:
        """Map the primary keys of the pooled jobs to their names in the job's report."""
        return {}

    def larger_model(self) -> LargerModel | None:
        """Return the model of which the job makes a smaller one, or None."""
        return None

    def repeated_trial(self) -> int | None:
        """Return the number of the trial in its root's search whose values the job uses, or None."""
        return None

    def source_trial(self) -> SourceTrial | None:
        """Return the trial in another search from which the job's spec has its values, or None."""
        return None

    def hyperparameters(self) -> dict[str, Value]:
        """Return the hyperparameter values that the job applies to the spec."""
        return {}

    def code_digest(self) -> str | None:
        """Return the digest of user code that the job executes beside its spec's code, or None."""
        return None

    def lineage(self) -> dict[str, Any]:
        """Return the job's entries in its model's lineage."""
        return {}


class Result(BaseModel):
    """The value that a kind's engine function returns, stored in `Job.results`.

    Fields that the kind does not declare are kept unchanged.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    metrics: dict[str, Figures] = {}
    test_rows: int | None = None

    def measured_on(self, part: Literal["validation", "test"]) -> Measured | None:
        """Return the objective on a part of the data with its interval, if the job measured it."""
        del part
        return None

    def call_times(self) -> CallTimes:
        """Return the times of calls that the job measured."""
        return CallTimes({}, "")

    def member_weights(self) -> Mapping[str, float]:
        """Return the weights of pooled models by their members' names."""
        return {}

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that the database keeps: only the fields that were set."""
        return self.model_dump(mode="json", exclude_unset=True)

    def with_fields(self, **fields: Any) -> Self:
        """Return a copy with further fields."""
        return self.model_validate({**self.to_json(), **fields})


def plans_no_jobs(spec: ExperimentSpec) -> int:
    """Return 0: experiments create no such jobs."""
    del spec
    return 0


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The properties of a job kind that other modules read.

    Attributes:
        name: The kind's name in `Job.kind` and `Task.kind`.
        title: The kind's name for people.
        payload: The type stored in `Job.payload`. Each kind has its own: it names the kind of a new job.
        result: The type stored in `Job.results`.
        task: The type of task that a runner gets. None if the kind needs no runner.
        engine: The dotted path to the engine function that runs the task.
        needs_jax: Whether that function needs Keras and JAX, whose imports take seconds.
        public_as: The kind's name in REST and on pages, if it differs from `name`.
        planned: Returns how many such jobs an experiment creates.
        has_steps: Whether steps from `PIPELINE` follow such a root: see `jobs.kinds.steps_from`.
        has_trials: Whether an attempt holds some trials instead of the whole job.
        trial_waits_for: The reason shown for a queued trial if the scheduler does not place it.
        trains: Whether the job trains one model epoch by epoch.
        pools: Whether the job pools trained models into one.
        evaluates: Whether the job evaluates a model on test rows.
        candidate: The key of the job's metrics in its root's results.
        report: The type of its JSON artifact with the role `report`, if it writes one.
        registered_as: The role under which the job's model is registered.
        belongs_to: The payload field with the primary key of the row that the job describes or checks. Its
            root jobs are deleted together with this row. Empty if there is none.
        retrains_chosen: Whether the job retrains trials chosen from the search `payload.search`.
        keeps_result: Whether the result is stored in the job's row. If not, another row stores it.
        installs_packages: Whether the job's work is to install packages, so that it begins without a runner.
        usual_starts: The usual duration, divided by a runner's start time. None if epochs are counted.
        tabs: The tabs on the job's page, in order.
        details: The dotted path to a query. The overview tab shows its result in a section, if there is one.
        details_template: The template for this section, which gets the result as `details`.
        listed: Whether the job list shows the kind by default.
        retry_refusal: Why such a job is never retried. Empty if it can be retried.
        submittable: Whether users may submit such a job directly, with its payload as input.
    """

    name: str
    title: str
    payload: type[Payload] = Payload
    result: type[Result] = Result
    task: type[Task] | None = None
    engine: str = ""
    needs_jax: bool = True
    public_as: str = ""
    planned: Callable[[ExperimentSpec], int] = plans_no_jobs
    has_steps: bool = False
    has_trials: bool = False
    trial_waits_for: str = ""
    trains: bool = False
    pools: bool = False
    evaluates: bool = False
    candidate: str = ""
    report: type[ModelReport] | None = None
    registered_as: Registered | None = None
    belongs_to: Owner | Literal[""] = ""
    retrains_chosen: bool = False
    keeps_result: bool = True
    installs_packages: bool = False
    usual_starts: float | None = None
    tabs: tuple[Tab, ...] = TABS
    details: str = ""
    details_template: str = ""
    listed: bool = True
    retry_refusal: str = ""
    submittable: bool = False

    @property
    def public_name(self) -> str:
        """Return the kind's name in REST and in addresses of pages."""
        return self.public_as or self.name

    @property
    def noun(self) -> str:
        """Return the kind's title inside a sentence."""
        return self.title.lower()
