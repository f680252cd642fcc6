"""Defines the tasks that run trials or single trainings, and how an epoch was chosen."""

from typing import Literal

from pydantic import Field

from jobs.messages.task import CheckpointFolder, DatasetFile, EarlierTraining, Task
from jobs.spec.base import Frozen
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.after import Retrain
from jobs.spec.sections.evaluation import Turn
from jobs.spec.sections.pruning import Curve
from jobs.spec.sections.search import Direction, Objective
from jobs.spec.space.search_space import Value


class ExecutionPlan(Frozen):
    """One unfinished training in a trial, and the checkpoints from which it can resume, newest first."""

    execution: int = Field(ge=1)
    seed: int
    repeat: int = Field(default=1, ge=1)
    fold: int | None = Field(
        default=None, ge=1, description="the fold of a cross-validation that is held out"
    )
    checkpoints: tuple[CheckpointFolder, ...] = ()
    wants_baseline: bool = Field(
        default=False, description="whether the constant prediction's score on its rows is not known yet"
    )
    earlier: EarlierTraining | None = None

    def turn(self) -> Turn:
        """Return the execution's repeat and fold."""
        return Turn(self.repeat, self.fold)


class TrialPlan(Frozen):
    """One trial in a task: its values, the spec with these applied, and its unfinished executions."""

    number: int = Field(ge=1)
    values: dict[str, Value]
    spec: ExperimentSpec
    executions: tuple[ExecutionPlan, ...]
    until: int | None = Field(default=None, ge=1, description="the epoch up to which it may train now")
    waits: bool = Field(
        default=False, description="whether an execution that reaches `until` waits for a promotion"
    )

    @property
    def epochs(self) -> int:
        """Return the epoch at which its trainings end if nothing stops them earlier."""
        return self.spec.fit.epochs if self.until is None else min(self.until, self.spec.fit.epochs)


class TrialTask(Task):
    """Run one search's trials, one after another. `spec` is the search's spec, without a trial's values."""

    kind: Literal["search"] = "search"
    spec: ExperimentSpec
    objective: Objective
    dataset: DatasetFile | None
    trials: tuple[TrialPlan, ...] = Field(min_length=1)
    curves: tuple[Curve, ...] = Field(
        default=(), description="learning curves of earlier trials, for the pruner"
    )

    def resumes_from(self) -> tuple[CheckpointFolder, ...]:
        """Return the checkpoints for the first trial's first open training."""
        first = self.trials[0].executions
        return first[0].checkpoints if first else ()


class TrainTask(Task):
    """Find the best epoch, retrain on training and validation rows, and evaluate on the test rows once."""

    kind: Literal["train"] = "train"
    spec: ExperimentSpec
    dataset: DatasetFile | None
    retrain: Retrain | None
    objective: Objective
    model_name: str = Field(description="unique name of the Keras model: two members may not share one")
    resume: tuple[CheckpointFolder, ...] = Field(default=(), description="newest first")
    earlier: EarlierTraining | None = None

    def resumes_from(self) -> tuple[CheckpointFolder, ...]:
        """Return the checkpoints from either phase."""
        return self.resume


class Choice(Frozen):
    """Which epoch a training chose, and why.

    Attributes:
        metric: the measure that chose it, see `jobs.spec.sections.monitors`.
        direction: its better direction.
        value: its value in that epoch.
        epoch: counted from 1.
        epochs: how many epochs were compared.
        rows: how many validation rows they were compared on.
        stopped_by: the measure whose patience ended the training; empty if all epochs ran.
        keeps_last: whether the last epoch's weights are kept, as `restore_best` asked, or since it is a
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
    """A retrained model's objective on one part of the data, with its 95 % interval."""

    metric: str
    value: float | None
    low: float | None
    high: float | None
    rows: int
