"""Declares the answers about jobs: steps, progress, attempts and checkpoints."""

from datetime import datetime
from typing import Annotated, Literal, NotRequired, TypedDict

from pydantic import Field

from jobs.answers.base import Answer, ErrorOut, Stored
from jobs.answers.code.sandbox import SandboxOut
from jobs.answers.runs.results import ResultsOut
from jobs.messages.events import PhaseName
from jobs.messages.sandbox import SandboxRecord

JobStateOut = Literal[
    "draft",
    "queued",
    "starting",
    "running",
    "paused",
    "retrying",
    "lost",
    "stopping",
    "stopped",
    "completed",
    "failed",
]


class StepOut(Answer):
    """One step of a root job."""

    kind: str
    job: int | None = Field(description="Null while the step has no job yet.")
    state: str | None = Field(description="Null while the step has no job yet.")
    title: str


class ProgressOut(Answer):
    """How far a job is."""

    done: float | int
    total: float | int
    unit: str = Field(description="The counted unit, for example executions or epochs.")
    fraction: float = Field(description="From 0 to 1; running work and later steps count in part.")
    eta_seconds: float | None = Field(description="Null while it is unknown.")
    phase: PhaseName | None = Field(
        description="Work without measurable progress, such as compiling; null while units are counted."
    )
    time_limited: bool = Field(
        description="Whether its time limit alone ends this search; `total` is then a bound that it seldom "
        "reaches."
    )
    max_minutes: float | None = Field(description="That limit; null for others.")


class JobOut(Answer):
    """A job."""

    id: int
    kind: str = Field(description="For example search, train, ensemble, quantize, register or gate.")
    title: str
    state: JobStateOut
    desired: Literal["running", "paused", "stopped", "killed"] = Field(
        description="The requested state; `state` follows."
    )
    finishing: bool = Field(
        description="Whether a user or its time limit ended the search early; its steps still run."
    )
    project: str | None
    experiment: int | None
    revision: int | None = Field(description="The revision of the experiment that it runs.")
    parent: int | None = Field(description="The root job, for a job that follows from another.")
    steps: list[StepOut]
    progress: ProgressOut
    why_waiting: str = Field(description="A sentence; empty if the job does not wait.")
    attempt: int
    restarts: int
    priority: int
    pool: str
    labels: dict[str, str] = Field(description="Only workers with all of these labels run it.")
    slots: int
    max_minutes: float | None = Field(
        description="How long it may run, without waiting and pauses; null for no limit, and for a search."
    )
    results: Stored[ResultsOut]
    sandbox: Stored[SandboxOut | None] = Field(
        description="The weakest sandbox that its code of users had; null without such code, and until it "
        "has begun."
    )
    error: Stored[ErrorOut | None]
    created_by: str | None
    created: datetime
    started: datetime | None
    finished: datetime | None
    seconds: float | None = Field(
        description="How long it ran, over all its attempts and those of its steps: without the time in "
        "which it waited, was paused, or had stopped. Null while it has not ended."
    )


class WaitsForWorkerOut(TypedDict):
    """Why no running worker can take a job."""

    pointer: Annotated[str, Field(description="The field that decides it: /pool, /labels or /slots.")]
    message: str


class ChangedJobOut(JobOut):
    """A job after a change."""

    warnings: list[WaitsForWorkerOut] = Field(description="Why it will wait although slots are free.")


class SubmittedOut(Answer):
    """The root job of a submitted experiment."""

    job: int
    warnings: list[WaitsForWorkerOut] = Field(description="Why it will wait although slots are free.")


class DeviceRecordOut(TypedDict):
    """A device that an attempt used."""

    id: int
    platform: str
    kind: str
    cuda_visible_device: NotRequired[Annotated[str, Field(description="The GPU's number on its machine.")]]


class ResumptionOut(TypedDict):
    """A training that an attempt continued from a checkpoint; equal digests mean equal weights."""

    trial: int | None
    execution: int | None
    epoch: int
    saved: Annotated[str, Field(description="SHA-256 of the weights in the checkpoint.")]
    loaded: Annotated[str, Field(description="SHA-256 of the weights that the training continued with.")]


class TrialPhaseOut(TypedDict):
    """The work of an attempt on a trial while its progress is not known."""

    trial: int
    name: PhaseName


class RecordOut(TypedDict, total=False):
    """The conditions of a result beside its spec; empty until the attempt has started."""

    python: str
    packages: dict[str, str]
    machine: str
    cpu: str
    cores: int | None
    threads: int
    xla_flags: str
    devices: list[DeviceRecordOut]
    seed: int | None
    spec_digest: str | None
    dataset_digest: str | None
    resumed: NotRequired[list[ResumptionOut]]
    phase: NotRequired[TrialPhaseOut | None]


class AttemptOut(Answer):
    """One attempt at a job, or at some trials of a search."""

    number: int
    trials: list[int]
    worker: str
    state: str
    outcome: str | None
    resumed_from: int | None = Field(description="The step of the checkpoint that it resumed from.")
    error: Stored[ErrorOut | None]
    sandbox: Stored[SandboxRecord | None] = Field(
        description="The sandbox that its code of users had; null without such code."
    )
    record: Stored[RecordOut]
    assigned: datetime
    claimed: datetime | None
    ended: datetime | None


class CheckpointOut(Answer):
    """A checkpoint that is kept."""

    job: int
    trial: int | None
    execution: int | None
    attempt: int
    step: int
    epoch: int
    bytes: int
    manifest: str = Field(description="SHA-256 of its manifest.")
    created: datetime
