"""Defines the payload and the result of a training; `jobs.messages.training` defines its task."""

from typing import Any, Literal

from pydantic import Field

from jobs.kinds.base import Payload, SourceTrial
from jobs.kinds.roots import RootResult
from jobs.messages.training import Choice, Measured
from jobs.spec.space.search_space import Value


class TrainPayload(Payload):
    """The trial whose values are used; None if the experiment has no search.

    Attributes:
        trial: its number in the search that the training follows.
        values: its values.
        source: the trial in another search from which the experiment was made.
    """

    trial: int | None = Field(default=None, ge=1)
    values: dict[str, Value] = {}
    source: SourceTrial | None = None

    def repeated_trial(self) -> int | None:
        """Return the number of the trial that supplies the values."""
        return self.trial

    def source_trial(self) -> SourceTrial | None:
        """Return the trial in another search from which the experiment was made."""
        return self.source

    def hyperparameters(self) -> dict[str, Value]:
        """Return the trial's values."""
        return self.values

    def lineage(self) -> dict[str, Any]:
        """Return the trial and its values."""
        return {} if self.trial is None else {"trial": self.trial, "values": self.values}


class TrainResult(RootResult):
    """The result of a training. A root's result includes the results of its later steps.

    Attributes:
        score: the objective in the chosen epoch.
        choice: which epoch was chosen.
        measured: a retrained model's objective by data part: the first phase's on validation rows, the final
            model's on test rows.
        command: that started a script.
    """

    score: float | None = None
    choice: Choice | None = None
    measured: dict[Literal["validation", "test"], Measured] = {}
    best_epoch: int | None = None
    epochs: int | None = None
    epochs_to_find: int | None = None
    parameters: int | None = None
    bytes: int | None = None
    train_rows: int | None = None
    command: tuple[str, ...] = ()

    def measured_on(self, part: Literal["validation", "test"]) -> Measured | None:
        """Return the objective on a part of the data; None if it was not measured there."""
        return self.measured.get(part)
