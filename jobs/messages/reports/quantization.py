"""Defines a quantization's report: both models compared in size, predictions, latency and layers."""

from typing import Literal

from pydantic import Field

from jobs.messages.reports.base import FiniteOrNull, Metrics, ModelReport
from jobs.spec.sections.data import Task

type Which = Literal["original", "quantized"]


class BytesBeforeAfter(ModelReport):
    """A size before and after quantization."""

    before: int
    after: int
    ratio: float | None = Field(default=None, description="After divided by before.")


class QuantizedBytes(ModelReport):
    """Sizes in bytes."""

    file: BytesBeforeAfter = Field(description="Of the files, both without an optimizer.")
    weights: BytesBeforeAfter = Field(description="Of the variables in memory.")
    stored: int | None = Field(default=None, description="Of the original file as it is stored.")


class Agreement(ModelReport):
    """How often both models predict the same. `share` is for classes, the differences are for regression."""

    share: float | None = Field(default=None, description="Share of rows with the same prediction.")
    max_difference: FiniteOrNull = Field(default=None, description="In standard deviations of the target.")
    mean_difference: FiniteOrNull = Field(default=None, description="In standard deviations of the target.")


class CallTime(ModelReport):
    """The time of one call with a batch."""

    p50_ms: float
    p95_ms: float
    calls: int


class LayerError(ModelReport):
    """A quantized layer, and the error of its weights: ‖W − Ŵ‖ / ‖W‖."""

    layer: str
    kind: str
    relative_error: FiniteOrNull


class SkippedLayer(ModelReport):
    """A layer whose weights stay as they are, and why."""

    layer: str
    kind: str
    reason: str


class QuantizationReport(ModelReport):
    """The comparison of a quantized model with its original on the same test rows."""

    mode: str
    task: Task
    test_rows: int
    bytes: QuantizedBytes
    metrics: dict[Which, Metrics]
    weighted_by: str = Field(
        default="",
        description="The column whose numbers weigh the rows in the metrics; empty if each row counts once.",
    )
    agreement: Agreement
    latency: dict[Which, dict[str, CallTime]] = Field(description="By batch size.")
    hardware: str = Field(description="The machine on which the latency was measured.")
    platform: str = Field(default="", description="cpu, gpu or tpu; empty in reports of earlier releases.")
    layers: tuple[LayerError, ...]
    skipped: tuple[SkippedLayer, ...]
