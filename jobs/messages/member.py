"""Defines one member of an ensemble, as its task receives it."""

from pydantic import Field

from jobs.messages.task import InputPath
from jobs.spec.base import Frozen
from jobs.spec.exports import STORED
from jobs.spec.space.search_space import Value


class Member(Frozen):
    """One retrained model, and its predictions from before it was trained on validation data."""

    name: str
    model: InputPath = Field(description=f"path of its {STORED.suffix}")
    validation_predictions: InputPath = Field(description="path of an .npz: y_true, y_pred, rows")
    score: float | None = None
    values: dict[str, Value] = Field(default_factory=dict)
    title: str = Field(default="", description="name for people; `name` if empty")

    @property
    def label(self) -> str:
        """Return the member's name for people."""
        return self.title or self.name
