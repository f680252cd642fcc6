"""What an ensemble's row holds, and its task."""

from typing import Any, Literal

from pydantic import Field

from jobs.contracts.after import Ensemble
from jobs.contracts.base import Frozen
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.search_space import Value
from jobs.contracts.task_parts import DatasetFile, Task
from jobs.kinds.base import Payload, Result


class EnsemblePayload(Payload):
    """The trainings whose models are pooled, by their primary keys."""

    members: tuple[int, ...]


class EnsembleResult(Result):
    """What pooling found."""

    weights: list[dict[str, Any]] = []
    best_single: str = ""
    members: list[str] = []
    parameters: int | None = None
    note: str = ""


class Member(Frozen):
    """One retrained model and its predictions, made while it had not seen validation data."""

    name: str
    model: str = Field(description="path of its .keras")
    validation_predictions: str = Field(description="path of an .npz: y_true, y_pred, rows")
    score: float | None = None
    values: dict[str, Value] = Field(default_factory=dict)
    seed_only: bool = False
    title: str = Field(default="", description="what people call it; its name where nothing stands")

    @property
    def called(self) -> str:
        """Return what sentences for people call this member."""
        return self.title or self.name


class EnsembleTask(Task):
    """Fit weights on the members' validation predictions, save one .keras, evaluate on test once."""

    kind: Literal["ensemble"] = "ensemble"
    spec: ExperimentSpec
    ensemble: Ensemble
    dataset: DatasetFile
    members: tuple[Member, ...] = Field(min_length=2)
