"""Defines the payload, the result and the task of a training."""

from typing import Any, Literal

from pydantic import Field

from jobs.kinds.base import Payload
from jobs.kinds.search.payload import RootResult
from jobs.messages.task import CheckpointFolder, DatasetFile, Task
from jobs.spec.base import Frozen
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.after import Retrain
from jobs.spec.sections.search import Direction, Objective
from jobs.spec.space.search_space import Value


class SourceTrial(Frozen):
    """A trial of another search, whose values an experiment of its own retrains."""

    search: int
    trial: int = Field(ge=1)


class TrainPayload(Payload):
    """The trial whose values are used; None if the experiment has no search.

    Attributes:
        trial: its number in the search that the training follows.
        values: its values.
        source: the trial of another search from which the experiment was made.
    """

    trial: int | None = Field(default=None, ge=1)
    values: dict[str, Value] = {}
    source: SourceTrial | None = None

    def hyperparameters(self) -> dict[str, Value]:
        """Return the trial's values."""
        return self.values

    def lineage(self) -> dict[str, Any]:
        """Return the trial and its values."""
        return {} if self.trial is None else {"trial": self.trial, "values": self.values}


class Choice(Frozen):
    """Which epoch a training chose, and why.

    Attributes:
        metric: the measure that chose it, see `jobs.spec.sections.monitors`.
        direction: its better direction.
        value: its value in that epoch.
        epoch: counted from 1.
        epochs: how many epochs were compared.
        rows: the number of validation rows on which they were compared.
        stopped_by: the measure whose patience ended the training; empty if all epochs ran.
        keeps_last: whether the weights are those of the last epoch, as `restore_best` asked, or since it is a
            forest.
    """

    metric: str
    direction: Direction
    value: float | None
    epoch: int
    epochs: int
    rows: int
    stopped_by: str = ""
    keeps_last: bool = False


class Measured(Frozen):
    """The objective of a retrained model on one part of the data, with its 95 % interval."""

    metric: str
    value: float | None
    low: float | None
    high: float | None
    rows: int


class TrainResult(RootResult):
    """The result of a training. A root's result includes the results of its later steps.

    Attributes:
        score: the objective in the chosen epoch.
        choice: which epoch was chosen.
        measured: the objective of a retrained model by part of the data: of the first phase on validation
            rows, of the final model on test rows.
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


class TrainTask(Task):
    """Find the best epoch, retrain on training and validation rows, and evaluate on the test rows once."""

    kind: Literal["train"] = "train"
    spec: ExperimentSpec
    dataset: DatasetFile | None
    retrain: Retrain | None
    objective: Objective
    model_name: str = Field(description="unique name of the Keras model: two members may not share one")
    resume: tuple[CheckpointFolder, ...] = Field(default=(), description="newest first")

    def resumes_from(self) -> tuple[CheckpointFolder, ...]:
        """Return the checkpoints of either phase."""
        return self.resume
