"""The kinds of hyperparameter: their values, their grid, how one value is drawn, on what they depend.

Values, scales and steps are KerasTuner's; `docs/search-spaces.md` says where they differ on purpose.
"""

import random
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from jobs.contracts.base import Frozen
from jobs.contracts.ranges import FINEST, Sampling, Steps, at, closest, closest_gap, rounded, whole_steps

Value = bool | int | float | str
Values = Mapping[str, Value]

LARGEST_WHOLE = 2**53 - 1
"""Larger whole numbers are not kept exactly by every program that reads JSON."""

SHOWN = 8
"""So many values of a list are named in a sentence."""

GRID_POINTS_WITHOUT_STEP = 10
"""How many grid points a float (or a log int) without a step gets, as in KerasTuner."""


class When(Frozen):
    """A hyperparameter is active only while its parent `name` has one of the values `in`."""

    name: str
    in_: tuple[Value, ...] = Field(alias="in", min_length=1, max_length=10_000)


class _Hyperparameter(Frozen):
    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_./-]{0,99}$")
    when: When | Annotated[tuple[When, ...], Field(max_length=50)] | None = None

    def conditions(self) -> tuple[When, ...]:
        """Return the conditions, all of which must hold."""
        if self.when is None:
            return ()
        return (self.when,) if isinstance(self.when, When) else self.when

    def takes(self, value: Value) -> bool:
        """Say whether sampling or a grid may give this value, of this type."""
        return (type(value), value) in self.typed

    @cached_property
    def typed(self) -> frozenset[tuple[type, Value]]:
        """Return the values with their types: true is not 1."""
        return frozenset((type(value), value) for value in self.grid())

    def grid(self) -> Sequence[Value]:
        """List the grid's values."""
        raise NotImplementedError

    def is_countable(self) -> bool:
        """Say whether the grid holds every value that sampling may give."""
        return True

    def is_active(self, values: Values) -> bool:
        """Say whether every condition holds under `values` (parents come before children)."""
        return all(c.name in values and values[c.name] in c.in_ for c in self.conditions())


class _Range(_Hyperparameter):
    sampling: Sampling = "linear"

    def _check(self, low: float, high: float, step: float | None, default: float | None) -> None:
        if low > high:
            raise ValueError(f"min {low} is above max {high}")
        if self.sampling != "linear" and low <= 0:
            raise ValueError(f"min {low} must be above 0 for {self.sampling} sampling")
        if step is not None and self.sampling != "linear" and step <= 1:
            raise ValueError(f"step {step} multiplies under {self.sampling} sampling and must be above 1")
        if default is not None and not low <= default <= high:
            raise ValueError(f"default {default} lies outside {low} to {high}")

    def _check_default(self, default: float, nearest: float) -> None:
        """Check that a default is one of the values; runs after the range itself was checked."""
        if default != nearest:
            raise ValueError(f"default {default} is not on a step; the nearest value is {nearest}")


class IntParameter(_Range):
    """A whole number from `min` to `max` inclusive."""

    kind: Literal["int"]
    min: int = Field(ge=-LARGEST_WHOLE, le=LARGEST_WHOLE)
    max: int = Field(ge=-LARGEST_WHOLE, le=LARGEST_WHOLE)
    step: int | None = Field(default=None, ge=1, le=LARGEST_WHOLE)
    default: int | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        self._check(self.min, self.max, self.step, self.default)
        if self.default is not None and self.step is not None:
            self._check_default(self.default, closest(self._steps(), self.default))
        return self

    def _steps(self) -> Sequence[int]:
        if self.step is None:
            return range(self.min, self.max + 1)
        return whole_steps(self.min, self.max, self.step, self.sampling)

    def takes(self, value: Value) -> bool:
        """Say whether sampling or a grid may give this value."""
        return isinstance(value, int) and not isinstance(value, bool) and value in self._steps()

    def is_countable(self) -> bool:
        """Say whether the grid holds every value that sampling may give."""
        return self.step is not None or self.sampling == "linear"

    def grid(self) -> Sequence[int]:
        """List the grid's values, ascending; without a step, 10 evenly spread ones under log sampling."""
        if self.step is not None:
            return self._steps()
        if self.sampling == "linear":
            return range(self.min, self.max + 1)
        last = GRID_POINTS_WITHOUT_STEP - 1
        return sorted({round(at(i / last, self.min, self.max, self.sampling)) for i in range(last + 1)})

    def sample(self, rng: random.Random) -> int:
        """Draw one value."""
        if self.is_countable():
            return rng.choice(self.grid())
        value = at(rng.random(), self.min - 0.5 if self.min > 1 else self.min, self.max + 0.5, self.sampling)
        return min(max(round(value), self.min), self.max)


class FloatParameter(_Range):
    """A number from `min` to `max` inclusive."""

    kind: Literal["float"]
    min: float
    max: float
    step: float | None = Field(default=None, gt=0)
    default: float | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        self._check(self.min, self.max, self.step, self.default)
        if self.step is None:
            return self
        if closest_gap(self.min, self.step, self.sampling) < FINEST * max(abs(self.min), abs(self.max)):
            raise ValueError(f"step {self.step} is too fine to tell the values up to {self.max} apart")
        if self.default is not None:
            self._check_default(self.default, self._steps(self.step).nearest(self.default))
        return self

    def _steps(self, step: float) -> Steps:
        return Steps(self.min, self.max, step, self.sampling)

    def takes(self, value: Value) -> bool:
        """Say whether sampling or a grid may give this value."""
        if isinstance(value, bool | str):
            return False
        return value in self._steps(self.step) if self.step else self.min <= value <= self.max

    def is_countable(self) -> bool:
        """Say whether the grid holds every value that sampling may give."""
        return self.step is not None or self.min == self.max

    def grid(self) -> Sequence[float]:
        """List the grid's values, ascending; 10 evenly spread ones when there is no step."""
        if self.min == self.max:
            return [self.min]
        if self.step is not None:
            return self._steps(self.step)
        last = GRID_POINTS_WITHOUT_STEP - 1
        return [rounded(at(i / last, self.min, self.max, self.sampling)) for i in range(last + 1)]

    def sample(self, rng: random.Random) -> float:
        """Draw one value."""
        if self.step is not None:
            return rng.choice(self.grid())
        return min(max(at(rng.random(), self.min, self.max, self.sampling), self.min), self.max)


class BooleanParameter(_Hyperparameter):
    """True or false."""

    kind: Literal["boolean"]
    default: bool | None = None

    def grid(self) -> Sequence[bool]:
        """List both values."""
        return [False, True]

    def sample(self, rng: random.Random) -> bool:
        """Draw one value."""
        return rng.random() < 0.5


class ChoiceParameter(_Hyperparameter):
    """One of the listed values, all of one type."""

    kind: Literal["choice"]
    values: tuple[Value, ...] = Field(min_length=1, max_length=10_000)
    default: Value | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len({type(v) for v in self.values}) > 1:
            raise ValueError(
                f"values {list(self.values)!r} mix types; give all strings or all numbers of one kind"
            )
        if len(set(self.values)) < len(self.values):
            raise ValueError(f"values {list(self.values)!r} repeat a value")
        if self.default is not None and not self.takes(self.default):
            raise ValueError(f"default {self.default!r} is not among {list(self.values)!r}")
        return self

    def grid(self) -> Sequence[Value]:
        """List the values in the order given."""
        return list(self.values)

    def sample(self, rng: random.Random) -> Value:
        """Draw one value."""
        return rng.choice(self.values)


class FixedParameter(_Hyperparameter):
    """Always the same value."""

    kind: Literal["fixed"]
    value: Value

    def grid(self) -> Sequence[Value]:
        """List the one value."""
        return [self.value]

    def sample(self, rng: random.Random) -> Value:  # noqa: ARG002  one signature for all kinds
        """Return the value."""
        return self.value


Parameter = Annotated[
    IntParameter | FloatParameter | BooleanParameter | ChoiceParameter | FixedParameter,
    Field(discriminator="kind"),
]


def told(parameter: Parameter) -> str:
    """Say in a few words which values a hyperparameter takes."""
    if isinstance(parameter, IntParameter | FloatParameter):
        noun = "whole numbers" if parameter.kind == "int" else "numbers"
        step = "" if parameter.step is None else f" in steps of {parameter.step}"
        if parameter.step is not None and parameter.sampling != "linear":
            step = f", each {parameter.step} times as far on"
        return f"{noun} from {parameter.min} to {parameter.max}{step}"
    values = list(parameter.grid())
    more = f" and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
    return ", ".join(repr(value) for value in values[:SHOWN]) + more
