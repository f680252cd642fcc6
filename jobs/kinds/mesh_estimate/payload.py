"""Defines the payload, the result and the task of an estimate for a mesh."""

from typing import Literal

from pydantic import Field

from jobs.kinds.base import Payload, Result
from jobs.messages.task import DatasetFile, Task
from jobs.spec.checks.dry_build import Output
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.compiled_step import CompiledStep, LargestBatch
from jobs.spec.plan.model_state import ModelState


class MeshEstimatePayload(Payload):
    """The model that is built without values, and the mesh for which its training step is compiled.

    Attributes:
        spec: without a search; its mesh has simulated CPU devices.
        output: the meaning of the outputs of own code, if a dry build has found it.
        compiles: whether the step is compiled; if not, only the variables are found.
        device_bytes: the memory of one device, for the largest batch; None if it is not asked for.
        model_key: the same for estimates of the same model on the same data.
        key: the same for equal estimates.
    """

    spec: ExperimentSpec
    output: Output | None = None
    compiles: bool = True
    device_bytes: int | None = None
    model_key: str
    key: str

    def code_digest(self) -> str | None:
        """Return the digest of the code version that builds the model."""
        return self.spec.model.code_digest


class MeshEstimateResult(Result):
    """The variables of the model, and its compiled step.

    Attributes:
        state: the variables.
        step: None if it was not compiled.
        largest: None if it was not asked for.
        notes: sentences about how they were found.
        versions: of the libraries that have built and compiled the model.
    """

    state: ModelState
    step: CompiledStep | None = None
    largest: LargestBatch | None = None
    notes: tuple[str, ...] = ()
    versions: dict[str, str] = {}


class MeshEstimateTask(Task):
    """Build a model without values, and compile its training step for simulated devices."""

    kind: Literal["mesh_estimate"] = "mesh_estimate"
    spec: ExperimentSpec
    output: Output | None = None
    compiles: bool
    device_bytes: int | None = None
    dataset: DatasetFile = Field(description="read only if the shape of its rows is not known without")

    def reads_foreign_file(self) -> bool:
        """Return whether the version that is trained further comes from elsewhere."""
        return self.base_model is not None and self.base_model.foreign
