"""Declares the spec section `search`: algorithm, objectives, trials, pruning and search space."""

from functools import cached_property, reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, SerializeAsAny, ValidationInfo, field_validator, model_validator

from jobs.spec.algorithms import ALGORITHMS
from jobs.spec.algorithms.info import AlgorithmInfo
from jobs.spec.base import DocumentedAs, Frozen
from jobs.spec.sections.evaluation import Evaluation, Holdout, Turn
from jobs.spec.sections.measures import LONGEST_NAME
from jobs.spec.sections.pruning import Pruner
from jobs.spec.sections.rungs import Bracket, RungOptions, total_epochs
from jobs.spec.space.search_space import Space, Value, check_space, value_errors
from jobs.spec.space.size import GRID_LIMIT, grid_size

MOST_TRIALS = 100_000
UNCOUNTED_TRIALS = 10_000
"""With a time limit, so many trials or more are only a bound: the search is over before."""
Direction = Literal["min", "max"]
Duplicates = Literal["replace", "answer", "train"]
if TYPE_CHECKING:
    Algorithm = str
else:
    # Computed from the registry, which a type checker cannot do.
    Algorithm = Literal[tuple(ALGORITHMS)]
Options: Any = reduce(or_, (info.options for info in ALGORITHMS.values() if info.options is not None))


class Objective(Frozen):
    """The metric that trials are ranked by, as named in the logs of `fit` (`val_…`), or by a script."""

    metric: str = Field(default="val_loss", min_length=1, max_length=LONGEST_NAME)
    direction: Direction = "min"

    def better(self, a: float, b: float) -> bool:
        """Return whether score `a` is better than `b`."""
        return a > b if self.direction == "max" else a < b

    def cost(self, score: float) -> float:
        """Return the score as a value to minimize."""
        return -score if self.direction == "max" else score


class SearchSpec(Frozen):
    """A search over `space`: `max_trials` trials of `executions_per_trial` trainings or cross-validations.

    Attributes:
        objective: the objective that ranks trials.
        objectives: several objectives; the best trials are the Pareto front. `objective` is then the first
            of them, which is used where a single number is needed, such as for the best epoch of a training.
        duplicates: what happens when the algorithm suggests a configuration again. `replace` uses a
            configuration without a trial, or trains again with other seeds if there is none; `answer` copies
            the scores of the completed trial; `train` trains it again.
        warm_start: the id of a search with the same project and objective, whose completed trials the
            algorithm's model is fitted to as well.
    """

    algorithm: Algorithm = "random"
    # `SerializeAsAny`, because pydantic would otherwise dump only the fields of `Frozen`, which has none.
    options: Annotated[SerializeAsAny[Frozen], DocumentedAs(Options)] | None = Field(
        default=None, description="an instance of the algorithm's options class"
    )
    objective: Objective = Objective()
    objectives: tuple[Objective, ...] | None = Field(default=None, min_length=2, max_length=4)
    max_trials: int = Field(default=20, ge=1, le=MOST_TRIALS)
    max_minutes: float | None = Field(
        default=None,
        gt=0,
        le=100_000,
        description="since its start, pauses included; then running trials are stopped and the later steps "
        "begin, once a trial has a score; no limit if absent",
    )
    executions_per_trial: int = Field(default=1, ge=1, le=100)
    parallel_trials: int | None = Field(default=None, ge=1, le=10_000, description="all free slots if absent")
    evaluation: Evaluation = Holdout()
    max_consecutive_failures: int = Field(default=3, ge=1)
    duplicates: Duplicates = "replace"
    # Larger ids do not fit the database's integers.
    warm_start: int | None = Field(default=None, ge=1, lt=2**63)
    # NumPy accepts 32 bits.
    seed: int = Field(default=0, ge=0, lt=2**32)
    pruner: Pruner | None = Field(
        default=None, description="stops trainings with bad intermediate results; none if absent"
    )
    space: Space = Field(
        default=(), max_length=200, description="absent only for own code: the space that it declares"
    )
    start_with: tuple[dict[str, Value], ...] = Field(
        default=(), max_length=100, description="configurations that are tried first, beside max_trials"
    )

    @field_validator("space")
    @classmethod
    def _check_space(cls, space: Space) -> Space:
        check_space(space)
        return space

    @field_validator("options", mode="before")
    @classmethod
    def _parse_options(cls, options: Any, context: ValidationInfo) -> Frozen | None:
        # A refused algorithm is missing in the data and has its own error.
        if options is None or "algorithm" not in context.data:
            return None
        info = ALGORITHMS[context.data["algorithm"]]
        if info.options is None:
            names = " and ".join(other.name for other in ALGORITHMS.values() if other.options is not None)
            raise ValueError(f"{info.name} has no options; {names} have")
        return info.options.model_validate(options)

    @model_validator(mode="after")
    def _check_start(self) -> Self:
        # Checked with the space that the code declares, once that is known.
        if not self.space:
            return self
        for i, values in enumerate(self.start_with):
            for name, message in value_errors(self.space, values):
                raise ValueError(f"start_with.{i}.{name}: {message}")
        return self

    @model_validator(mode="after")
    def _check_grid_size(self) -> Self:
        if self.info.enumerates_grid and self._grid_size >= GRID_LIMIT:
            raise ValueError("the grid has a million configurations or more; give larger steps or use random")
        return self

    @model_validator(mode="after")
    def _check_pruner(self) -> Self:
        if self.pruner is None:
            return self
        if self.info.has_rungs:
            raise ValueError(f"pruner must be absent: {self.algorithm} stops trials itself")
        if self.objectives is not None:
            raise ValueError("pruner must be absent: pruners support only a single objective")
        return self

    @model_validator(mode="after")
    def _check_rungs(self) -> Self:
        if not self.info.has_rungs:
            return self
        options = self.rung_options()
        if options.max_epochs is not None and options.min_epochs > options.max_epochs:
            raise ValueError(
                f"options.min_epochs {options.min_epochs} is above max_epochs {options.max_epochs}"
            )
        if self.duplicates == "answer":
            raise ValueError(
                f"duplicates must be replace or train with {self.algorithm}, whose scores depend on the rung"
            )
        for i, parameter in enumerate(self.space):
            if parameter.name in ("epochs", "fit/epochs"):
                raise ValueError(
                    f"space.{i}.name: epochs cannot be searched with {self.algorithm}, which sets them"
                )
        return self

    # Before validation: afterwards a default `objective` looks the same as a given one.
    @model_validator(mode="before")
    @classmethod
    def _default_objective(cls, body: Any) -> Any:
        if isinstance(body, dict) and body.get("objectives") and "objective" not in body:
            return body | {"objective": body["objectives"][0]}
        return body

    @model_validator(mode="after")
    def _check_objectives(self) -> Self:
        if self.objectives is None:
            return self
        if self.objective != self.objectives[0]:
            raise ValueError("objective must be the first of objectives, or be left out")
        if len({objective.metric for objective in self.objectives}) < len(self.objectives):
            raise ValueError("objectives contain a metric twice")
        if not self.info.several_objectives:
            names = ", ".join(sorted(info.name for info in ALGORITHMS.values() if info.several_objectives))
            raise ValueError(
                f"objectives must be absent: {self.algorithm} supports only one objective; use {names}"
            )
        return self

    @property
    def info(self) -> AlgorithmInfo:
        """Return the algorithm's entry in the table."""
        return ALGORITHMS[self.algorithm]

    @cached_property
    def _grid_size(self) -> int:
        return grid_size(self.space)

    def ranked_by(self) -> tuple[Objective, ...]:
        """Return all objectives, the main one first."""
        return self.objectives or (self.objective,)

    def options_as[T: Frozen](self, kind: type[T]) -> T:
        """Return the algorithm's options, or their defaults.

        Raises:
            TypeError: they are not an instance of `kind`.
        """
        options = self.options or (self.info.options() if self.info.options is not None else None)
        if not isinstance(options, kind):
            raise TypeError(f"{self.algorithm} has no {kind.__name__}")
        return options

    def rung_options(self) -> RungOptions:
        """Return the options for rungs.

        Raises:
            TypeError: the algorithm has no rungs.
        """
        return self.options_as(RungOptions)

    @property
    def time_limit(self) -> float | None:
        """Return the minutes after which a search ends, if they alone end it, or None if its trials may."""
        return self.max_minutes if self.max_trials >= UNCOUNTED_TRIALS else None

    def trials_planned(self, epochs: int) -> int:
        """Return how many trials will run; a grid or brackets may need fewer than `max_trials`.

        Args:
            epochs: how many epochs a full training has, `fit.epochs`.
        """
        if self.info.enumerates_grid and self.space:
            return min(self.max_trials, self._grid_size)
        if self.info.has_rungs:
            return sum(bracket.sizes[0] for bracket in self.brackets(epochs))
        return self.max_trials

    def trainings(self) -> int:
        """Count the trainings (executions) for each trial."""
        return self.executions_per_trial * self.evaluation.trainings()

    def turns(self) -> list[Turn]:
        """Return the repeat and the held-out fold for each training in a trial."""
        return [self.evaluation.turn(execution) for execution in range(1, self.trainings() + 1)]

    def brackets(self, epochs: int) -> list[Bracket]:
        """Return the search's brackets; an empty list if the algorithm has no rungs."""
        if self.info.brackets is None:
            return []
        return self.info.brackets(self.rung_options(), epochs, self.max_trials)

    def epochs_planned(self, epochs: int) -> int:
        """Return the total epochs if every trial has one execution, without early stopping."""
        if self.info.has_rungs:
            return sum(total_epochs(bracket) for bracket in self.brackets(epochs))
        return self.trials_planned(epochs) * epochs
