"""How a search chooses and runs its trials."""

from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, SerializeAsAny, ValidationInfo, field_validator, model_validator

from jobs.contracts.algorithms import ALGORITHMS
from jobs.contracts.algorithms.info import AlgorithmInfo
from jobs.contracts.base import Frozen
from jobs.contracts.evaluation import Evaluation, Holdout, Turn
from jobs.contracts.pruning import Pruner
from jobs.contracts.rungs import Bracket, RungOptions, epochs_of
from jobs.contracts.search_space import Space, check_space
from jobs.contracts.space_size import grid_size

Direction = Literal["min", "max"]
Duplicates = Literal["replace", "answer", "train"]
if TYPE_CHECKING:
    Algorithm = str
else:  # the names of the table; a type checker cannot compute them
    Algorithm = Literal[tuple(ALGORITHMS)]


class Objective(Frozen):
    """The metric that trials are ranked by, as named in the logs of `fit` (`val_…`)."""

    metric: str = "val_loss"
    direction: Direction = "min"

    @field_validator("metric")
    @classmethod
    def _never_chosen_by_test_data(cls, metric: str) -> str:
        if not metric.startswith("val_"):
            raise ValueError(
                f"{metric!r} is not a validation metric; trials are chosen by a val_… metric only"
            )
        return metric

    def better(self, a: float, b: float) -> bool:
        """Say whether `a` beats `b`."""
        return a > b if self.direction == "max" else a < b

    def cost(self, score: float) -> float:
        """Return the score as something to be minimized."""
        return -score if self.direction == "max" else score


class SearchSpec(Frozen):
    """A search over `space`: `max_trials` trials of `executions_per_trial` trainings (or rounds of folds).

    Attributes:
        objective: what trials are ranked by.
        objectives: several: the trials that no other beats in all of them are best. `objective` is then the
            first of them, which counts where one number is needed: for the best epoch of a training, say.
        duplicates: what becomes of a configuration that the algorithm proposes again. `replace` takes one
            that has no trial yet, and trains it again with other seeds once there is none; `answer` copies
            the scores of its completed trial; `train` trains it again.
        warm_start: a search of the same project and objective whose completed trials teach the model.
    """

    algorithm: Algorithm = "random"
    options: SerializeAsAny[Frozen] | None = Field(default=None, description="of the algorithm's own class")
    objective: Objective = Objective()
    objectives: tuple[Objective, ...] | None = Field(default=None, min_length=2, max_length=4)
    max_trials: int = Field(default=20, ge=1, le=100_000)
    executions_per_trial: int = Field(default=1, ge=1, le=100)
    parallel_trials: int | None = Field(default=None, ge=1, le=10_000, description="all free slots if absent")
    evaluation: Evaluation = Holdout()
    max_consecutive_failures: int = Field(default=3, ge=1)
    duplicates: Duplicates = "replace"
    warm_start: int | None = Field(default=None, ge=1, lt=2**63)
    seed: int = Field(default=0, ge=0, lt=2**32)
    pruner: Pruner | None = Field(default=None, description="stops trainings that others outdo; absent: none")
    space: Space = Field(min_length=1, max_length=200)

    @field_validator("space")
    @classmethod
    def _space_holds_together(cls, space: Space) -> Space:
        check_space(space)
        return space

    @field_validator("options", mode="before")
    @classmethod
    def _options_are_of_the_algorithm(cls, options: Any, found: ValidationInfo) -> Frozen | None:
        if options is None or "algorithm" not in found.data:
            return None
        info = ALGORITHMS[found.data["algorithm"]]
        if info.options is None:
            able = " and ".join(other.name for other in ALGORITHMS.values() if other.options is not None)
            raise ValueError(f"options are for {able}; {info.name} takes none")
        return info.options.model_validate(options)

    @model_validator(mode="after")
    def _grid_is_finite(self) -> Self:
        if self.info.enumerates_grid and grid_size(self.space) >= 1_000_000:
            raise ValueError("this grid has a million configurations or more; give steps or use random")
        return self

    @model_validator(mode="after")
    def _pruner_has_something_to_decide(self) -> Self:
        if self.pruner is None:
            return self
        if self.info.has_rungs:
            raise ValueError(f"pruner must be absent: {self.algorithm} itself decides how long trials train")
        if self.objectives is not None:
            raise ValueError("pruner must be absent: it weighs one objective, and there are several")
        return self

    @model_validator(mode="after")
    def _rungs_decide_alone(self) -> Self:
        if not self.info.has_rungs:
            return self
        options = self.rung_options()
        if options.max_epochs is not None and options.min_epochs > options.max_epochs:
            raise ValueError(f"options.min_epochs {options.min_epochs} is above max {options.max_epochs}")
        if self.duplicates == "answer":
            raise ValueError(
                f"duplicates cannot be answered under {self.algorithm}: scores are of other rungs"
            )
        for i, parameter in enumerate(self.space):
            if parameter.name == "epochs":
                raise ValueError(f"space.{i}.name: {self.algorithm} decides on the epochs itself")
        return self

    @model_validator(mode="before")
    @classmethod
    def _first_of_several_leads(cls, body: Any) -> Any:
        if isinstance(body, dict) and body.get("objectives") and "objective" not in body:
            return body | {"objective": body["objectives"][0]}
        return body

    @model_validator(mode="after")
    def _objectives_are_one_or_several(self) -> Self:
        if self.objectives is None:
            return self
        if self.objective != self.objectives[0]:
            raise ValueError("objective must be the first of objectives, or be left out")
        if len({objective.metric for objective in self.objectives}) < len(self.objectives):
            raise ValueError("objectives name a metric twice")
        if not self.info.several_objectives:
            able = ", ".join(sorted(info.name for info in ALGORITHMS.values() if info.several_objectives))
            raise ValueError(
                f"objectives must be one under {self.algorithm}, which puts trials in one order; use {able}"
            )
        return self

    @property
    def info(self) -> AlgorithmInfo:
        """Return the algorithm's entry in the table."""
        return ALGORITHMS[self.algorithm]

    def ranked_by(self) -> tuple[Objective, ...]:
        """Return every objective, the leading one first."""
        return self.objectives or (self.objective,)

    def options_as[T: Frozen](self, kind: type[T]) -> T:
        """Return the algorithm's options, given or by default.

        Raises:
            TypeError: they are of another class than `kind`.
        """
        options = self.options or (self.info.options() if self.info.options is not None else None)
        if not isinstance(options, kind):
            raise TypeError(f"{self.algorithm} has no {kind.__name__}")
        return options

    def rung_options(self) -> RungOptions:
        """Return the options of an algorithm with rungs.

        Raises:
            TypeError: the algorithm has no rungs.
        """
        return self.options_as(RungOptions)

    def trials_planned(self, epochs: int) -> int:
        """Return how many trials will run: a grid or all brackets may be smaller than `max_trials`.

        Args:
            epochs: of a whole training, `fit.epochs`.
        """
        if self.info.enumerates_grid:
            return min(self.max_trials, grid_size(self.space))
        if self.info.has_rungs:
            return sum(bracket.sizes[0] for bracket in self.brackets(epochs))
        return self.max_trials

    def trainings(self) -> int:
        """Return how many trainings each trial takes."""
        return self.executions_per_trial * self.evaluation.trainings()

    def turns(self) -> list[Turn]:
        """Return what each training of a trial does: the repeat, and the fold that it holds out."""
        return [self.evaluation.turn(execution) for execution in range(1, self.trainings() + 1)]

    def brackets(self, epochs: int) -> list[Bracket]:
        """Return the brackets that the search will fill; none where the algorithm has no rungs."""
        if self.info.brackets is None:
            return []
        return self.info.brackets(self.rung_options(), epochs, self.max_trials)

    def epochs_planned(self, epochs: int) -> int:
        """Return how many epochs one execution of every trial comes to, if nothing stops early."""
        if self.info.has_rungs:
            return sum(epochs_of(bracket) for bracket in self.brackets(epochs))
        return self.trials_planned(epochs) * epochs
