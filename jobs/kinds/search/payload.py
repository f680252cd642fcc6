"""What a search's row holds, and the task that runs trials of it."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from jobs.contracts.base import Frozen
from jobs.contracts.evaluation import Turn
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.pruning import Curve
from jobs.contracts.search import Objective
from jobs.contracts.search_space import Value
from jobs.contracts.task_parts import CheckpointFolder, DatasetFile, Task
from jobs.kinds.base import Figures, Payload, Result


class SearchPayload(Payload):
    """How far the algorithm of a search is.

    Attributes:
        exhausted: the algorithm has nothing more to suggest.
        nothing_for: the state of the trials to which the algorithm had no answer.
        first_revision: the revision that the search began with, once it was changed.
        beyond_space: how many of the algorithm's trials lie outside a space that was made narrower.
    """

    exhausted: bool = False
    nothing_for: str | None = None
    first_revision: int | None = None
    beyond_space: int | None = None

    def trials_planned(self, spec: ExperimentSpec | None) -> int:
        """Return how many trials the algorithm will make; those outside a grid are none of its points."""
        if spec is None or spec.search is None:
            return 0
        trials = spec.search.trials_planned(spec.fit.epochs)
        if spec.search.info.enumerates_grid:
            return min(spec.search.max_trials, trials + (self.beyond_space or 0))
        return trials


class BestTrial(BaseModel):
    """The best trial of a search, in short."""

    number: int
    values: dict[str, Any]
    score: float | None
    std: float | None


class FamilyResult(Result):
    """What a root and the steps after it came to.

    Attributes:
        best_trial: of a search.
        candidates: the metrics of each model that came out, by `Facts.candidate`.
    """

    best_trial: BestTrial | None = None
    candidates: dict[str, dict[str, Figures]] = {}


class ExecutionPlan(Frozen):
    """One training of a trial still to be done, and the newest checkpoints to go on from, newest first."""

    execution: int = Field(ge=1)
    seed: int
    repeat: int = Field(default=1, ge=1)
    fold: int | None = Field(default=None, ge=1, description="of a cross-validation: the one held out")
    checkpoints: tuple[CheckpointFolder, ...] = ()

    def turn(self) -> Turn:
        """Return its part of the evaluation."""
        return Turn(self.repeat, self.fold)


class TrialPlan(Frozen):
    """One trial of a task: its values, the spec with these applied, and its executions still to be done."""

    number: int = Field(ge=1)
    values: dict[str, Value]
    spec: ExperimentSpec
    executions: tuple[ExecutionPlan, ...]
    until: int | None = Field(default=None, ge=1, description="the epoch up to which it may train now")
    waits: bool = Field(default=False, description="what reaches `until` waits there and may go on later")

    @property
    def epochs(self) -> int:
        """Return the epoch at which its trainings end, if nothing stops them before."""
        return self.spec.fit.epochs if self.until is None else min(self.until, self.spec.fit.epochs)


class TrialTask(Task):
    """Run trials of one search, one after another. `spec` is the search's, without any trial's values."""

    kind: Literal["search"] = "search"
    spec: ExperimentSpec
    objective: Objective
    dataset: DatasetFile
    trials: tuple[TrialPlan, ...] = Field(min_length=1)
    curves: tuple[Curve, ...] = Field(
        default=(), description="of earlier trials, which a pruner compares with"
    )

    def resumes_from(self) -> tuple[CheckpointFolder, ...]:
        """Return the checkpoints of the first trial's first open training."""
        first = self.trials[0].executions
        return first[0].checkpoints if first else ()
