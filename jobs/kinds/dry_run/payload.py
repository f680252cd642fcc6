"""Defines the payload, the result and the task of a dry run, which compares a precision with float32."""

from typing import Any, Literal

from pydantic import Field

from jobs.kinds.base import Payload, Result
from jobs.messages.reports.precision_comparison import DEFAULT_STEPS, MOST_STEPS, PrecisionComparison
from jobs.messages.task import DatasetFile, Task
from jobs.spec.experiment import ExperimentSpec


class DryRunPayload(Payload):
    """The experiment whose first steps are tried, without its search, its steps and its mesh.

    Attributes:
        spec_json: the experiment, as JSON.
        steps: the training steps with each precision.
        key: the same for equal experiments and data.
    """

    spec_json: dict[str, Any]
    steps: int = Field(default=DEFAULT_STEPS, ge=1, le=MOST_STEPS)
    key: str

    @property
    def spec(self) -> ExperimentSpec:
        """Return the experiment."""
        return ExperimentSpec.model_validate(self.spec_json)

    def code_digest(self) -> str | None:
        """Return the digest of the code version that builds the model, if code does."""
        model = self.spec_json["model"]
        return str(model["digest"]) if model.get("kind") == "code" else None


class DryRunResult(Result):
    """Both runs."""

    comparison: PrecisionComparison


class DryRunTask(Task):
    """Train some steps in float32 and with the spec's precision, and compare both."""

    kind: Literal["dry_run"] = "dry_run"
    spec: ExperimentSpec
    steps: int
    dataset: DatasetFile
