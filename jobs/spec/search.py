"""How a search chooses and runs its trials."""

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from jobs.spec.base import Frozen
from jobs.spec.evaluation import Evaluation, Holdout, Turn
from jobs.spec.search_space import Space, check_space, grid_size

Direction = Literal["min", "max"]
Algorithm = Literal["random", "grid", "bayesian"]


class Objective(Frozen):
    """The metric that trials are ranked by, as named in the logs of `fit` (`val_…`)."""

    metric: str = "val_loss"
    direction: Direction = "min"

    def better(self, a: float, b: float) -> bool:
        """Say whether `a` beats `b`."""
        return a > b if self.direction == "max" else a < b


class SearchSpec(Frozen):
    """A search over `space`: `max_trials` trials of `executions_per_trial` trainings (or rounds of folds)."""

    algorithm: Algorithm = "random"
    objective: Objective = Objective()
    max_trials: int = Field(default=20, ge=1, le=100_000)
    executions_per_trial: int = Field(default=1, ge=1, le=100)
    parallel_trials: int | None = Field(default=None, ge=1, le=10_000, description="all free slots if absent")
    evaluation: Evaluation = Holdout()
    max_consecutive_failures: int = Field(default=3, ge=1)
    seed: int = Field(default=0, ge=0, lt=2**32)
    space: Space = Field(min_length=1, max_length=200)

    @field_validator("objective")
    @classmethod
    def _never_chosen_by_test_data(cls, objective: Objective) -> Objective:
        if not objective.metric.startswith("val_"):
            raise ValueError(
                f"{objective.metric!r} is not a validation metric; trials are chosen by a val_… metric only"
            )
        return objective

    @field_validator("space")
    @classmethod
    def _space_holds_together(cls, space: Space) -> Space:
        check_space(space)
        return space

    @model_validator(mode="after")
    def _grid_is_finite(self) -> Self:
        if self.algorithm == "grid" and grid_size(self.space) >= 1_000_000:
            raise ValueError("this grid has a million configurations or more; give steps or use random")
        return self

    def trials_planned(self) -> int:
        """Return how many trials will run: a grid may be smaller than `max_trials`."""
        if self.algorithm == "grid":
            return min(self.max_trials, grid_size(self.space))
        return self.max_trials

    def trainings(self) -> int:
        """Return how many trainings each trial takes."""
        return self.executions_per_trial * self.evaluation.trainings()

    def turns(self) -> list[Turn]:
        """Return what each training of a trial does: the repeat, and the fold that it holds out."""
        return [self.evaluation.turn(execution) for execution in range(1, self.trainings() + 1)]
