"""Defines the payload, the result and the task of a quantization."""

from typing import Any, Literal

from jobs.contracts.after import Quantize
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.task_parts import DatasetFile, Task
from jobs.kinds.base import Figures, Payload, Result


class QuantizePayload(Payload):
    """The job whose model is quantized, by its primary key."""

    source: int


class QuantizeResult(Result):
    """The comparison of the two models; `metrics` are of the quantized one."""

    original: dict[str, Figures] = {}
    bytes: dict[str, Any] = {}
    agreement: dict[str, Any] = {}
    latency: dict[str, Any] = {}
    parameters: int | None = None


class QuantizeTask(Task):
    """Quantize a trained model and compare it with the original on the same test rows."""

    kind: Literal["quantize"] = "quantize"
    spec: ExperimentSpec
    quantize: Quantize
    dataset: DatasetFile
    model: str
