"""Declares the `results` of a job: the keys that every job has, and those of single kinds."""

from typing import Annotated, Literal, NotRequired, TypedDict

from pydantic import Field

from jobs.answers.base import Figures, Parameter, SignatureOut
from jobs.messages.reports.ensemble import MemberWeight
from jobs.messages.reports.quantization import Agreement, CallTime, QuantizedBytes, Which
from jobs.spec.json_types import JsonObject


class BestTrialOut(TypedDict):
    """The best trial of a search so far."""

    number: int
    values: dict[str, Parameter]
    score: float | None
    std: float | None


class ArtifactOut(TypedDict):
    """A file that a job made."""

    digest: Annotated[str, Field(description="SHA-256; the file is at /artifacts/{digest}.")]
    role: Annotated[str, Field(description="For example model, evaluation or report.")]
    bytes: int
    name: str
    job: Annotated[int, Field(description="The job that made it: this job or one of its children.")]
    meta: JsonObject


class MadeVersionOut(TypedDict):
    """A registered version that came from a job."""

    model: str
    number: int
    what: Annotated[str, Field(description="best, ensemble, quantized or uploaded.")]


class WarningOut(TypedDict):
    """Something that the user should know.

    `job` is the id of the step to which it belongs: the job itself or one after it. `step` is its name.
    """

    code: str
    message: str
    job: int
    step: str


class GateResultOut(TypedDict):
    """The result of one gate."""

    name: str
    state: str
    value: float | str | bool | None
    limit: float | str | bool | None
    champion: float | str | bool | None
    detail: str
    rule: NotRequired[str]
    metric: NotRequired[str]
    direction: NotRequired[Literal["min", "max"] | None]
    low: NotRequired[Annotated[float | None, Field(description="Of the value's 95 % interval.")]]
    high: NotRequired[float | None]
    rows: NotRequired[int | None]
    alternatives: NotRequired[list[JsonObject]]


class ChoiceOut(TypedDict):
    """The epoch that a training chose, and why."""

    metric: Annotated[str, Field(description="The measure that chose it.")]
    direction: Literal["min", "max"]
    value: float | None
    epoch: int
    epochs: Annotated[int, Field(description="How many epochs were compared.")]
    rows: Annotated[int, Field(description="The validation rows on which they were compared.")]
    stopped_by: Annotated[str, Field(description="The measure whose patience ended it; empty: none.")]
    keeps_last: Annotated[bool, Field(description="Whether the last weights were kept.")]


class MeasuredOut(TypedDict):
    """The objective of a retrained model on one part of the data, with its 95 % interval."""

    metric: str
    value: float | None
    low: float | None
    high: float | None
    rows: int


class ResultsOut(TypedDict):
    """The results of a job. A key beside the first three is present once its step has completed."""

    artifacts: list[ArtifactOut]
    versions: list[MadeVersionOut]
    warnings: list[WarningOut]
    best_trial: NotRequired[Annotated[BestTrialOut, Field(description="Of a search.")]]
    metrics: NotRequired[
        Annotated[dict[str, Figures], Field(description="Of the final candidate, by part of the data.")]
    ]
    candidates: NotRequired[
        Annotated[
            dict[str, dict[str, Figures]],
            Field(description="Metrics of every candidate: best, ensemble, quantize."),
        ]
    ]
    score: NotRequired[float | None]
    best_epoch: NotRequired[int | None]
    choice: NotRequired[Annotated[ChoiceOut, Field(description="How the best epoch was chosen.")]]
    measured: NotRequired[
        Annotated[dict[str, MeasuredOut], Field(description="Of a retraining, by part of the data.")]
    ]
    epochs: NotRequired[int]
    epochs_to_find: NotRequired[
        Annotated[int, Field(description="Epochs of the first training, which found the best epoch.")]
    ]
    signature: NotRequired[SignatureOut]
    class_labels: NotRequired[list[str]]
    parameters: NotRequired[Annotated[int, Field(description="Parameters of the model.")]]
    bytes: NotRequired[Annotated[int | QuantizedBytes, Field(description="Size of the model file.")]]
    train_rows: NotRequired[int]
    test_rows: NotRequired[int]
    members: NotRequired[Annotated[list[str], Field(description="Of an ensemble.")]]
    weights: NotRequired[Annotated[list[MemberWeight], Field(description="Of an ensemble.")]]
    best_single: NotRequired[Annotated[str, Field(description="The best member of an ensemble.")]]
    note: NotRequired[str]
    original: NotRequired[
        Annotated[dict[str, Figures], Field(description="Metrics before quantization, by part of the data.")]
    ]
    agreement: NotRequired[Agreement]
    latency: NotRequired[
        Annotated[
            dict[Which, dict[str, CallTime]],
            Field(description="Of both models of a quantization, by batch size."),
        ]
    ]
    hardware: NotRequired[Annotated[str, Field(description="The machine on which latency was measured.")]]
    quantized_layers: NotRequired[int]
    skipped_layers: NotRequired[int]
    keras_version: NotRequired[str | None]
    sample_rows: NotRequired[int]
    tried: NotRequired[Annotated[str, Field(description="Which rows a validation has tried the model with.")]]
    finding: NotRequired[Annotated[str, Field(description="A validation's warning; empty if there is none.")]]
    gates: NotRequired[list[GateResultOut]]
