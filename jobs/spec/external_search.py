"""Defines the settings for a search whose trials run in scripts outside Trainyard."""

from collections.abc import Iterable
from typing import Self

from pydantic import ConfigDict, Field, field_validator

from jobs.spec.algorithms import ALGORITHMS
from jobs.spec.base import Frozen
from jobs.spec.sections.search import Algorithm, Direction, Objective, SearchSpec
from jobs.spec.space.hyperparameters import FixedParameter, first_value
from jobs.spec.space.search_space import Parameter, Space, Value, Values, check_space
from jobs.spec.space.size import grid_size

_PLACEHOLDER = FixedParameter(kind="fixed", name="none", value=0)
"""A search spec needs a space, but a script reports its own only when its first trial has ended."""


class ExternalSearch(Frozen):
    """The settings of a search whose trials run outside Trainyard, without an experiment spec.

    Attributes:
        metric: the objective's name among the metrics that scripts report. Any name is allowed: Trainyard
            does not know on which data scripts measure it.
        space: the search space; empty until a script has reported it.
        reported: the names that each report added to the space, oldest first. Their count is its revision.
        lease_seconds: how long a script may be silent before its trial is assigned to another.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    algorithm: Algorithm = "random"
    metric: str = Field(default="default_objective", min_length=1, max_length=200)
    direction: Direction = "min"
    max_trials: int = Field(default=20, ge=1, le=100_000)
    max_consecutive_failures: int = Field(default=3, ge=1)
    seed: int = Field(default=0, ge=0, lt=2**32)
    space: Space = Field(default=(), max_length=200)
    # The alias is the key in stored rows.
    reported: tuple[tuple[str, ...], ...] = Field(default=(), alias="told")
    lease_seconds: float = Field(default=6 * 3600.0, ge=1, le=30 * 86_400)

    @field_validator("algorithm")
    @classmethod
    def _trains_from_scratch(cls, algorithm: Algorithm) -> Algorithm:
        # KerasTuner has no message that asks a script to resume a trial.
        if ALGORITHMS[algorithm].has_rungs:
            raise ValueError(f"{algorithm} resumes trials from checkpoints, which external scripts cannot do")
        return algorithm

    @field_validator("space")
    @classmethod
    def _is_consistent(cls, space: Space) -> Space:
        check_space(space)
        return space

    def objective(self) -> Objective:
        """Return the objective, whose metric may have any name."""
        # `model_copy` does not validate: in an experiment spec, the name must begin with `val_`.
        return Objective().model_copy(update={"metric": self.metric, "direction": self.direction})

    def search_spec(self) -> SearchSpec:
        """Return the search spec that pages and queries read."""
        # Not validated: the metric may have any name, and the space may still be empty.
        return self.algorithm_spec().model_copy(update={"objective": self.objective(), "space": self.space})

    def algorithm_spec(self) -> SearchSpec:
        """Return the search spec that an algorithm gets, which uses only the objective's direction.

        Raises:
            pydantic.ValidationError: the algorithm cannot search this space.
        """
        return SearchSpec.model_validate(
            {
                "algorithm": self.algorithm,
                "objective": {"metric": "val_objective", "direction": self.direction},
                "max_trials": self.max_trials,
                "max_consecutive_failures": self.max_consecutive_failures,
                "seed": self.seed,
                "space": self.space or (_PLACEHOLDER,),
            }
        )

    def planned(self) -> int:
        """Return how many trials the algorithm will create."""
        finite = ALGORITHMS[self.algorithm].enumerates_grid and self.space
        return min(self.max_trials, grid_size(self.space)) if finite else self.max_trials

    def extended(self, reported: Iterable[Parameter]) -> Self:
        """Return a copy whose space has the new hyperparameters. Known ones keep their definition.

        Raises:
            pydantic.ValidationError: they contradict the known ones.
        """
        names_in_space = {parameter.name for parameter in self.space}
        new = tuple(parameter for parameter in reported if parameter.name not in names_in_space)
        if not new:
            return self
        names = tuple(parameter.name for parameter in new)
        body = {**dict(self), "space": (*self.space, *new), "reported": (*self.reported, names)}
        larger = type(self).model_validate(body)
        # Only for its errors: the space is valid, but may be too large for the algorithm.
        larger.algorithm_spec()
        return larger


class ChiefAddress(Frozen):
    """The address on which the chief of a search listens."""

    host: str = "127.0.0.1"
    port: int = 0


def with_defaults(space: Space, values: Values) -> dict[str, Value]:
    """Return a configuration with default values for missing hyperparameters."""
    # A trial may have run before a script reported the hyperparameter. It has trained with the default.
    whole: dict[str, Value] = {}
    for parameter in space:
        if parameter.is_active(whole):
            whole[parameter.name] = values.get(parameter.name, first_value(parameter))
    return whole
