"""Declares a runner's events: one JSON object per line on its event pipe.

The supervisor adds the attempt and stores the events; each gets a cursor in its root job's order. `time` is
in seconds since the epoch, UTC, by the runner's clock. `trial` is the number of the event's trial, or None;
`execution` counts from 1.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from jobs.spec.base import Frozen
from jobs.spec.sections.baseline import Baseline
from jobs.spec.sections.measures import LONGEST_NAME
from jobs.spec.sections.pruning import Verdict
from jobs.spec.space.search_space import Space, Value

Level = Literal["debug", "info", "warning", "error"]
Axis = Literal["epoch", "step", "batch", "second"]
PROGRESS_AXES: tuple[Axis, ...] = ("epoch", "step")
"""The axes whose newest point shows the progress: a training's epochs, or a script's steps."""
Role = Literal[
    "model",
    "weights",
    "evaluation",
    "predictions",
    "validation_predictions",
    "bad_rows",
    "sample",
    "overview",
    "thumbnails",
    "report",
    "summary",
    "shardings",
    "profile",
    "dataset",
    "loaded",
    "export",
    "output",
]
ExecutionState = Literal["running", "paused", "pruned", "completed", "failed"]
"""A paused training has reached the end of its trial's rung."""
Point = tuple[str, float, float | None, float]
"""(metric name, x, value or None where it was not finite, time)."""
DECLARED_AN_EVENT = 200
"""As many hyperparameters as a space may have."""
POINTS_AN_EVENT = 20_000
"""An event is read and sent as a whole, so it has at most as many points as a page can draw."""


class _Event(Frozen):
    time: float
    trial: int | None = None
    execution: int | None = None


class Started(_Event):
    """The engine is imported and the devices are open. Has the reproducibility record."""

    type: Literal["started"] = "started"
    record: dict[str, Any] = Field(default_factory=dict)
    resumed_from: int | None = Field(default=None, description="step of the checkpoint it resumes from")


class Progress(_Event):
    """`done` of `total` units. Sent at least every few seconds: the watchdog treats its absence as a hang."""

    type: Literal["progress"] = "progress"
    done: float
    total: float
    unit: str


PhaseName = Literal[
    "installing packages", "loading", "compiling", "timing", "validating", "saving", "evaluating", "working"
]  # fmt: skip
"""Reading data and building the model, compiling programs, timing two ways to train, validation after an
epoch, saving the model, evaluation on test rows, and any step of a task that has only a few."""


class Phase(_Event):
    """A phase begins whose progress is not known. It lasts until the next progress or phase.

    The watchdog gives it a separate limit.
    """

    type: Literal["phase"] = "phase"
    name: PhaseName


class Metric(_Event):
    """Points in one or more series of this execution, along one axis."""

    type: Literal["metric"] = "metric"
    x: Axis = "epoch"
    points: tuple[Point, ...] = Field(max_length=POINTS_AN_EVENT)


class Points(_Event):
    """Points in columns: `values[i][j]` is the value of `names[i]` at `at[j]`, reported at `times[j]`.

    Equivalent to a `Metric` with one point for each value, but ten times as cheap. Readers get a `metric`.
    """

    type: Literal["points"] = "points"
    x: Axis = "epoch"
    names: tuple[Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)], ...]
    at: tuple[float, ...]
    times: tuple[float, ...]
    values: tuple[tuple[float | None, ...], ...] = Field(description="a column for each name")

    @model_validator(mode="after")
    def _is_a_table(self) -> Self:
        rows = len(self.at)
        if len(self.times) != rows or any(len(column) != rows for column in self.values):
            raise ValueError(f"columns of different lengths; `at` has {rows}")
        if len(self.values) != len(self.names) or len(set(self.names)) != len(self.names):
            raise ValueError("not one column for each name")
        if not 0 < rows * len(self.names) <= POINTS_AN_EVENT:
            raise ValueError(f"{rows * len(self.names)} points; 1 to {POINTS_AN_EVENT} fit in an event")
        return self


class Log(_Event):
    """One log line."""

    type: Literal["log"] = "log"
    level: Level = "info"
    source: str = "runner"
    line: str


class TrialBegun(_Event):
    """The runner begins this trial."""

    type: Literal["trial_begun"] = "trial_begun"


class TrialError(Frozen):
    """Why a trial failed."""

    code: str
    message: str
    traceback: str = ""


TrialEnd = Literal["completed", "paused", "pruned"]
"""How a trial may end without an error. A paused trial waits because its rung has ended."""


class TrialDone(_Event):
    """The work on this trial has ended. Its score follows from its executions."""

    type: Literal["trial_done"] = "trial_done"
    state: TrialEnd | Literal["failed"]
    error: TrialError | None = None
    verdict: Verdict | None = Field(default=None, description="why it was pruned")


class ExecutionDone(_Event):
    """One training in a trial began or ended. `score` is the objective at its best epoch (epochs from 1)."""

    type: Literal["execution"] = "execution"
    state: ExecutionState
    score: float | None = None
    best_epoch: int | None = None
    epochs: int = 0
    metrics: dict[str, float | None] = Field(default_factory=dict, description="at the best epoch")
    best: tuple[tuple[int, float], ...] = Field(
        default=(), description="under a pruner: each epoch at which the objective was best, and its value"
    )


class CheckpointCommitted(_Event):
    """A checkpoint folder is complete on disk, under its final name."""

    type: Literal["checkpoint"] = "checkpoint"
    folder: str
    step: int
    epoch: int
    manifest: str = Field(description="sha256 of manifest.json")
    bytes: int


class Resumed(_Event):
    """A training continues from a checkpoint that another process wrote."""

    type: Literal["resumed"] = "resumed"
    epoch: int = Field(description="epochs completed")
    saved: str = Field(max_length=64, description="sha256 of the weights in the checkpoint")
    loaded: str = Field(max_length=64, description="sha256 of the weights that the training continues with")


class ArtifactWritten(_Event):
    """A file below the attempt's folder is complete and is to be stored."""

    type: Literal["artifact"] = "artifact"
    role: Role
    name: str
    path: str = Field(description="relative to the attempt's folder")
    meta: dict[str, Any] = Field(default_factory=dict)


class Warned(_Event):
    """A warning to the user, with a stable code."""

    type: Literal["warning"] = "warning"
    code: str
    message: str


class Declared(_Event):
    """A trial's code has asked for hyperparameters that the search's space lacks.

    Dynamic spaces are a part of KerasTuner's contract: a hyperparameter exists once code asks for it.
    """

    type: Literal["declared"] = "declared"
    rows: Annotated[Space, Field(max_length=DECLARED_AN_EVENT)] = ()
    values: dict[str, Value] = Field(default_factory=dict, description="of these, with which it trains")
    refused: Annotated[dict[str, str], Field(max_length=DECLARED_AN_EVENT)] = Field(
        default_factory=dict, description="why others cannot be searched, by name"
    )


class BaselineMeasured(_Event):
    """The constant prediction's score on the validation rows of one of a trial's executions."""

    type: Literal["baseline"] = "baseline"
    baseline: Baseline


class Result(_Event):
    """The task is done; the last event in a run that succeeded."""

    type: Literal["result"] = "result"
    result: dict[str, Any] = Field(default_factory=dict)


class Failed(_Event):
    """The task failed by itself: bad data, a diverged training, not enough memory."""

    type: Literal["failed"] = "failed"
    code: str
    message: str
    traceback: str = ""


class Yielded(_Event):
    """The task ended early on request, after writing a checkpoint."""

    type: Literal["yielded"] = "yielded"
    why: Literal["pause", "stop"]


class Ready(_Event):
    """A standby has finished its rehearsal. It belongs to no attempt and is never stored."""

    type: Literal["ready"] = "ready"


# Without `Ready`, which only the process that forked the standby reads.
RunnerEvent = Annotated[
    Started
    | Progress
    | Phase
    | Metric
    | Points
    | Log
    | TrialBegun
    | TrialDone
    | ExecutionDone
    | CheckpointCommitted
    | Resumed
    | ArtifactWritten
    | Warned
    | Declared
    | BaselineMeasured
    | Result
    | Failed
    | Yielded,
    Field(discriminator="type"),
]
RUNNER_EVENT: TypeAdapter[RunnerEvent] = TypeAdapter(RunnerEvent)
FINAL = (Result, Failed, Yielded)
