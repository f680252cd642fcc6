"""Declares a job's events as readers receive them: stored as JSON and passed through unchanged."""

from typing import Annotated, Literal, NotRequired, TypedDict

from pydantic import Discriminator, Field

from jobs.answers.base import Figures, Nonfinite
from jobs.messages.events import PhaseName
from jobs.spec.json_types import JsonObject

Cursor = Annotated[int, Field(description="The position in the root job's list of events.")]
Seconds = Annotated[float, Field(description="Seconds since 1970, UTC.")]


class _Event(TypedDict):
    cursor: Cursor
    time: Seconds
    job: int
    attempt: int
    trial: NotRequired[int]
    execution: NotRequired[int]


class StateEvent(_Event):
    """A job changed its state."""

    type: Literal["state"]
    state: str
    reason: NotRequired[Annotated[str, Field(description="For example killed.")]]


class AttemptEvent(_Event):
    """An attempt started."""

    type: Literal["attempt"]
    number: int
    resumed_from: Annotated[int | None, Field(description="The step of the checkpoint that it resumed from.")]


class ProgressEvent(_Event):
    """The progress of a task."""

    type: Literal["progress"]
    done: float
    total: float
    unit: str


class PhaseEvent(_Event):
    """Work began whose progress is not known. It lasts until the next progress or phase."""

    type: Literal["phase"]
    name: PhaseName


type MetricPoint = Annotated[list[str | float | None], Field(description="[name, x, value, time]")]


class MetricEvent(_Event):
    """New points of metric series."""

    type: Literal["metric"]
    x: Annotated[str, Field(description="epoch, batch or second.")]
    points: list[MetricPoint]
    nonfinite: NotRequired[Nonfinite]


class LogEvent(_Event):
    """One line of the log."""

    type: Literal["log"]
    level: Literal["debug", "info", "warning", "error"]
    source: str
    line: str


class TrialEvent(_Event):
    """A trial changed its state."""

    type: Literal["trial"]
    state: str
    score: NotRequired[float | None]
    std: NotRequired[float | None]


class ExecutionEvent(_Event):
    """A training of a trial started or ended."""

    type: Literal["execution"]
    state: str
    score: float | None
    best_epoch: NotRequired[int]
    epochs: int
    metrics: Annotated[Figures, Field(description="Metrics at the best epoch.")]
    nonfinite: NotRequired[Nonfinite]


class CheckpointEvent(_Event):
    """A checkpoint was written."""

    type: Literal["checkpoint"]
    step: int
    epoch: int
    manifest: Annotated[str, Field(description="SHA-256 of its manifest.")]
    bytes: int


class ResumedEvent(_Event):
    """A training continues from a checkpoint."""

    type: Literal["resumed"]
    epoch: int
    saved: Annotated[str, Field(description="SHA-256 of the weights in the checkpoint.")]
    loaded: Annotated[str, Field(description="SHA-256 of the weights that the training continues with.")]


class ArtifactEvent(_Event):
    """A file was made."""

    type: Literal["artifact"]
    role: str
    name: str
    digest: str
    bytes: int
    meta: JsonObject


class WarningEvent(_Event):
    """Something that the user should know."""

    type: Literal["warning"]
    code: str
    message: str


class RevisedEvent(_Event):
    """A running search was changed."""

    type: Literal["revised"]
    revision: int
    by: str
    changes: Annotated[list[str], Field(description="One sentence per change.")]


type EventOut = Annotated[
    StateEvent
    | AttemptEvent
    | ProgressEvent
    | PhaseEvent
    | MetricEvent
    | LogEvent
    | TrialEvent
    | ExecutionEvent
    | CheckpointEvent
    | ResumedEvent
    | ArtifactEvent
    | WarningEvent
    | RevisedEvent,
    Discriminator("type"),
]


class EventsOut(TypedDict):
    """Events after a cursor."""

    items: list[EventOut]
    cursor: Annotated[int, Field(description="Goes into `?after=` of the next request.")]


class LogsOut(TypedDict):
    """Log lines."""

    items: list[LogEvent]
    cursor: Annotated[int, Field(description="Goes into `?after=` of the next request.")]
