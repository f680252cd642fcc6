"""Declares the answers about estimates for meshes."""

from pydantic import Field

from jobs.answers.base import Answer, CauseOut
from jobs.messages.events import PhaseName
from jobs.spec.plan.compiled_step import CompiledStep, LargestBatch
from jobs.spec.plan.model_state import ModelState


class EstimateProgressOut(Answer):
    """How far an estimate is."""

    done: float = Field(description="Compilations that are done.")
    total: float = Field(description="Compilations that are needed; 0 while that is not known.")
    eta_seconds: float | None = Field(description="Null until a compilation is done.")
    phase: PhaseName | None = Field(description="The worker's activity; null while it waits.")


class MeshEstimateOut(Answer):
    """An estimate for a mesh: first its job, then the findings."""

    state: str = Field(description="The state of the job; `none` if no estimate was requested.")
    job: int | None
    compiles: bool = Field(description="Whether the training step is compiled, or only variables are listed.")
    progress: EstimateProgressOut | None = Field(description="Null unless the job is open.")
    variables: ModelState | None = Field(description="The model's variables; null until they are known.")
    step: CompiledStep | None = Field(
        description="As compiled for CPU devices, which no GPU compiler has seen; null until it is known."
    )
    largest: LargestBatch | None = Field(description="Null without device_gib.")
    notes: tuple[str, ...] = Field(description="How the variables were found.")
    versions: dict[str, str] = Field(description="Of the libraries that compiled it.")
    error: CauseOut | None = Field(description="Why the job failed.")
    why_waiting: str = Field(description="A sentence; empty if the job does not wait.")
