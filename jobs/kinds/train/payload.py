"""Defines the payload, the result and the task of a training."""

from typing import Any, Literal

from pydantic import Field

from jobs.contracts.after import Retrain
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.search import Objective
from jobs.contracts.search_space import Value
from jobs.contracts.task_parts import CheckpointFolder, DatasetFile, Task
from jobs.kinds.base import Payload
from jobs.kinds.search.payload import FamilyResult


class TrainPayload(Payload):
    """The trial whose values are used; None if the experiment has no search."""

    trial: int | None = Field(default=None, ge=1)
    values: dict[str, Value] = {}

    def hyperparameters(self) -> dict[str, Value]:
        """Return the trial's values."""
        return self.values

    def lineage(self) -> dict[str, Any]:
        """Return the trial and its values."""
        return {} if self.trial is None else {"trial": self.trial, "values": self.values}


class TrainResult(FamilyResult):
    """The result of a training. A root's result includes the results of its later steps."""

    score: float | None = None
    best_epoch: int | None = None
    epochs: int | None = None
    parameters: int | None = None


class TrainTask(Task):
    """Find the best epoch, retrain on training and validation rows, and evaluate on the test rows once."""

    kind: Literal["train"] = "train"
    spec: ExperimentSpec
    dataset: DatasetFile
    retrain: Retrain | None
    objective: Objective
    model_name: str = Field(description="unique name of the Keras model: two members may not share one")
    resume: tuple[CheckpointFolder, ...] = Field(default=(), description="newest first")

    def resumes_from(self) -> tuple[CheckpointFolder, ...]:
        """Return the checkpoints of either phase."""
        return self.resume
