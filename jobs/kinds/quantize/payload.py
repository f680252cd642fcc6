"""Defines the payload, the result and a quantization's task."""

from typing import Literal

from jobs.kinds.base import CallTimes, Figures, LargerModel, Payload, Result
from jobs.messages.reports.quantization import Agreement, CallTime, QuantizedBytes, Which
from jobs.messages.task import DatasetFile, InputPath, Task
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.after import Quantize


class QuantizePayload(Payload):
    """The model that is made smaller.

    Attributes:
        source: the primary key of the job that made it.
        mode: the format; empty: that of the experiment's step.
        artifact: the file of a registered version; empty: the newest model of the job.
        model: the registered model that gets the result as a version; empty: none does.
    """

    source: int
    mode: str = ""
    artifact: str = ""
    model: str = ""

    def larger_model(self) -> LargerModel:
        """Return the model that is made smaller."""
        return LargerModel(self.source, self.artifact, self.mode)


class QuantizeResult(Result):
    """The comparison of the two models; `metrics` describes the quantized one."""

    original: dict[str, Figures] = {}
    bytes: QuantizedBytes | None = None
    agreement: Agreement | None = None
    latency: dict[Which, dict[str, CallTime]] = {}
    hardware: str = ""
    parameters: int | None = None

    def call_times(self) -> CallTimes:
        """Return the times of calls of both models."""
        return CallTimes(self.latency, self.hardware)


class QuantizeTask(Task):
    """Quantize a trained model and compare it with the original on the same test rows."""

    kind: Literal["quantize"] = "quantize"
    spec: ExperimentSpec
    quantize: Quantize
    dataset: DatasetFile
    model: InputPath
