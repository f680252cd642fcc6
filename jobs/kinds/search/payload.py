"""Defines the payload, the result and the task of a search."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from jobs.kinds.base import Figures, Payload, Result
from jobs.messages.task import CheckpointFolder, DatasetFile, Task
from jobs.spec.base import Frozen
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.evaluation import Turn
from jobs.spec.sections.pruning import Curve
from jobs.spec.sections.search import Objective
from jobs.spec.space.search_space import Value


class SearchPayload(Payload):
    """The state of a search's algorithm.

    Attributes:
        exhausted: whether the algorithm has no more suggestions.
        answered_empty: the fingerprint of the trials for which the algorithm had no suggestion.
        first_revision: the revision with which the search began, set when the search is first revised.
        beyond_space: how many of the algorithm's trials are outside a narrowed space.
        has_whole_space: whether the space of a search of own code has all that the code declares.
    """

    exhausted: bool = False
    answered_empty: str | None = Field(default=None, alias="nothing_for")
    first_revision: int | None = None
    beyond_space: int | None = None
    has_whole_space: bool = False

    def trials_planned(self, spec: ExperimentSpec | None) -> int:
        """Return how many trials the algorithm will create. Trials outside a narrowed grid come on top."""
        if spec is None or spec.search is None:
            return 0
        trials = spec.search.trials_planned(spec.fit.epochs)
        if spec.search.info.enumerates_grid:
            return min(spec.search.max_trials, trials + (self.beyond_space or 0))
        return trials


class BestTrial(BaseModel):
    """A summary of the best trial of a search."""

    number: int
    values: dict[str, Any]
    score: float | None
    std: float | None


class RootResult(Result):
    """The result of a root and of the steps after it.

    Attributes:
        best_trial: the best trial, if the root is a search.
        candidates: the metrics of each resulting model, by `Facts.candidate`.
    """

    best_trial: BestTrial | None = None
    candidates: dict[str, dict[str, Figures]] = {}


class ExecutionPlan(Frozen):
    """One unfinished training of a trial, and the checkpoints from which it can resume, newest first."""

    execution: int = Field(ge=1)
    seed: int
    repeat: int = Field(default=1, ge=1)
    fold: int | None = Field(
        default=None, ge=1, description="the fold of a cross-validation that is held out"
    )
    checkpoints: tuple[CheckpointFolder, ...] = ()

    def turn(self) -> Turn:
        """Return the execution's repeat and fold."""
        return Turn(self.repeat, self.fold)


class TrialPlan(Frozen):
    """One trial of a task: its values, the spec with these applied, and its unfinished executions."""

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
    """Run trials of one search, one after another. `spec` is the search's spec, without a trial's values."""

    kind: Literal["search"] = "search"
    spec: ExperimentSpec
    objective: Objective
    dataset: DatasetFile | None
    trials: tuple[TrialPlan, ...] = Field(min_length=1)
    curves: tuple[Curve, ...] = Field(
        default=(), description="learning curves of earlier trials, for the pruner"
    )

    def resumes_from(self) -> tuple[CheckpointFolder, ...]:
        """Return the checkpoints of the first trial's first open training."""
        first = self.trials[0].executions
        return first[0].checkpoints if first else ()
