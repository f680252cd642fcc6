"""What the row of an external search holds: how its trials are chosen, and the space that scripts tell."""

from collections.abc import Iterable
from typing import Self

from pydantic import Field, field_validator

from jobs.contracts.algorithms import ALGORITHMS
from jobs.contracts.base import Frozen
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.hyperparameters import FixedParameter, FloatParameter, IntParameter
from jobs.contracts.search import Algorithm, Direction, Objective, SearchSpec
from jobs.contracts.search_space import Parameter, Space, Value, Values, check_space
from jobs.contracts.space_size import grid_size
from jobs.kinds.base import Payload

_STAND_IN = FixedParameter(kind="fixed", name="none", value=0)
"""A search spec has a space; a script tells its own only when its first trial has ended."""


class ExternalSearch(Frozen):
    """How the trials of a search are chosen and judged that no spec of ours describes.

    Attributes:
        metric: the objective's name among the metrics that scripts report. Any name: what they measure on
            cannot be seen from here.
        space: empty until a script has told it.
        told: the names that each telling added to the space, oldest first; their number is its revision.
        lease_seconds: how long a script may be silent before its trial is given to another.
    """

    algorithm: Algorithm = "random"
    metric: str = Field(default="default_objective", min_length=1, max_length=200)
    direction: Direction = "min"
    max_trials: int = Field(default=20, ge=1, le=100_000)
    max_consecutive_failures: int = Field(default=3, ge=1)
    seed: int = Field(default=0, ge=0, lt=2**32)
    space: Space = Field(default=(), max_length=200)
    told: tuple[tuple[str, ...], ...] = ()
    lease_seconds: float = Field(default=6 * 3600.0, ge=1, le=30 * 86_400)

    @field_validator("algorithm")
    @classmethod
    def _starts_from_nothing(cls, algorithm: Algorithm) -> Algorithm:
        if ALGORITHMS[algorithm].has_rungs:  # nothing can tell a script of KerasTuner to go on with a trial
            raise ValueError(f"{algorithm} lets trials go on from checkpoints, which outside scripts cannot")
        return algorithm

    @field_validator("space")
    @classmethod
    def _holds_together(cls, space: Space) -> Space:
        check_space(space)
        return space

    def objective(self) -> Objective:
        """Return the objective, whatever its name: that of our own searches begins with `val_`."""
        return Objective().model_copy(update={"metric": self.metric, "direction": self.direction})

    def search(self) -> SearchSpec:
        """Return it as pages and queries read a search."""
        return self.asked().model_copy(update={"objective": self.objective(), "space": self.space})

    def asked(self) -> SearchSpec:
        """Return it as an algorithm is asked, to which only the objective's direction matters.

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
                "space": self.space or (_STAND_IN,),
            }
        )

    def planned(self) -> int:
        """Return how many trials the algorithm will make."""
        finite = ALGORITHMS[self.algorithm].enumerates_grid and self.space
        return min(self.max_trials, grid_size(self.space)) if finite else self.max_trials

    def grown(self, found: Iterable[Parameter]) -> Self:
        """Return it with the hyperparameters that it did not know; what it knows stays as it is.

        Raises:
            pydantic.ValidationError: they do not hold together with the others.
        """
        known = {parameter.name for parameter in self.space}
        new = tuple(parameter for parameter in found if parameter.name not in known)
        if not new:
            return self
        names = tuple(parameter.name for parameter in new)
        body = {**dict(self), "space": (*self.space, *new), "told": (*self.told, names)}
        larger = type(self).model_validate(body)
        larger.asked()
        return larger


class Address(Frozen):
    """Where the chief of a search listens."""

    host: str = "127.0.0.1"
    port: int = 0


class ExternalSearchPayload(Payload):
    """A search whose trials scripts outside Trainyard run.

    Attributes:
        search: how it is run, with the space told so far.
        address: where its newest chief listened; None before the first.
        exhausted: the algorithm has nothing more to suggest.
    """

    search: ExternalSearch = Field(alias="outside")
    address: Address | None = None
    exhausted: bool = False

    def search_spec(self, spec: ExperimentSpec | None) -> SearchSpec:
        """Return the search, as pages and queries read one."""
        del spec
        return self.search.search()

    def objective(self, spec: ExperimentSpec | None) -> Objective:
        """Return the objective that the scripts report."""
        del spec
        return self.search.objective()

    def trials_planned(self, spec: ExperimentSpec | None) -> int:
        """Return how many trials the algorithm will make."""
        del spec
        return self.search.planned()


def default_of(parameter: Parameter) -> Value:
    """Return the value that a script of KerasTuner begins with."""
    default: Value | None = getattr(parameter, "default", None)
    if default is not None:
        return default
    return parameter.min if isinstance(parameter, IntParameter | FloatParameter) else parameter.grid()[0]


def completed(space: Space, values: Values) -> dict[str, Value]:
    """Return a configuration with the defaults of what it lacks.

    A trial that ran before a hyperparameter was found was built without it, which is how a script behaves
    that builds with its default.
    """
    whole: dict[str, Value] = {}
    for parameter in space:
        if parameter.is_active(whole):
            whole[parameter.name] = values.get(parameter.name, default_of(parameter))
    return whole
