"""Declares the hyperparameter kinds: their values, conditions, grids and random samples.

Values, scales and steps follow KerasTuner; `docs/search-spaces.md` lists the intended differences.
"""

import math
import random
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from jobs.spec.base import Frozen
from jobs.spec.space.range_text import with_range
from jobs.spec.space.ranges import (
    FINEST,
    Sampling,
    Steps,
    closest,
    closest_gap,
    rounded,
    value_at,
    whole_steps,
)

Value = bool | int | float | str
Values = Mapping[str, Value]

NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_./-]{0,99}$")
MAX_INTEGER = 2**53 - 1
"""Programs that read JSON numbers as doubles, such as browsers, round larger integers."""

SHOWN_VALUES = 8
"""The most values in a list in a message."""

GRID_POINTS_WITHOUT_STEP = 10
"""The grid points for a float, or a logarithmic integer, without a step; as in KerasTuner."""


class When(Frozen):
    """A hyperparameter is active only while its parent `name` has one of the values `in`."""

    name: str
    in_: tuple[Value, ...] = Field(alias="in", min_length=1, max_length=10_000)

    @cached_property
    def values(self) -> frozenset[Value]:
        """Return the values as a set, since `in_` may have thousands."""
        return frozenset(self.in_)


def _usable_name(name: object) -> object:
    if isinstance(name, str) and not NAME.fullmatch(name):
        usable = re.sub(r"[^A-Za-z0-9_./-]", "_", name)[:100]
        hint = f", for example {usable!r}" if NAME.fullmatch(usable) else ""
        raise ValueError(
            f"{name[:100]!r} is not a valid name: use up to 100 letters, digits, _ . / - and begin with a "
            f"letter or _{hint}"
        )
    return name


class _Hyperparameter(Frozen):
    name: Annotated[str, Field(pattern=NAME.pattern), BeforeValidator(_usable_name)]
    when: When | Annotated[tuple[When, ...], Field(max_length=50)] | None = None

    def conditions(self) -> tuple[When, ...]:
        """Return the conditions, all of which must hold."""
        if self.when is None:
            return ()
        return (self.when,) if isinstance(self.when, When) else self.when

    def takes(self, value: Value) -> bool:
        """Return whether sampling or the grid can yield this value, with this type."""
        return (type(value), value) in self.typed

    @cached_property
    def typed(self) -> frozenset[tuple[type, Value]]:
        """Return the grid's values with their types."""
        # In Python, True == 1 == 1.0, but a trial with another type is another configuration.
        return frozenset((type(value), value) for value in self.grid())

    def grid(self) -> Sequence[Value]:
        """Return the grid's values."""
        raise NotImplementedError

    def is_countable(self) -> bool:
        """Return whether the grid contains every value that sampling can yield."""
        return True

    def is_active(self, values: Values) -> bool:
        """Return whether all conditions are met. `values` contains the parents, which precede children."""
        return all(c.name in values and values[c.name] in c.values for c in self.conditions())


class _Range(_Hyperparameter):
    sampling: Sampling = "linear"

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, body: object) -> object:
        return with_range(body)

    def _check_range(self, low: float, high: float, step: float | None, default: float | None) -> None:
        if low > high:
            raise ValueError(f"min {low} is above max {high}")
        if self.sampling != "linear" and low <= 0:
            raise ValueError(f"min {low} must be above 0 for {self.sampling} sampling")
        # Grids and samples compute with this difference or quotient; an infinite one gives no value between.
        if math.isinf(high - low if self.sampling == "linear" else high / low):
            raise ValueError(f"max {high} is too far from min {low}: values between them overflow")
        if step is not None and self.sampling != "linear" and step <= 1:
            raise ValueError(f"step {step} must be above 1: it is a factor under {self.sampling} sampling")
        if default is not None and not low <= default <= high:
            raise ValueError(f"default {default} of {self.name!r} is outside {low} to {high}")

    def _check_default(self, default: float, nearest: float) -> None:
        """Check that a default lies on a step; call after `_check_range`."""
        if default != nearest:
            raise ValueError(
                f"default {default} of {self.name!r} is not on a step; the nearest value is {nearest}"
            )


class IntParameter(_Range):
    """An integer from `min` to `max` inclusive."""

    kind: Literal["int"]
    min: int = Field(ge=-MAX_INTEGER, le=MAX_INTEGER)
    max: int = Field(ge=-MAX_INTEGER, le=MAX_INTEGER)
    step: int | None = Field(default=None, ge=1, le=MAX_INTEGER)
    default: int | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        self._check_range(self.min, self.max, self.step, self.default)
        if self.default is not None and self.step is not None:
            self._check_default(self.default, closest(self._steps(), self.default))
        return self

    def _steps(self) -> Sequence[int]:
        if self.step is None:
            return range(self.min, self.max + 1)
        return whole_steps(self.min, self.max, self.step, self.sampling)

    def takes(self, value: Value) -> bool:
        """Return whether sampling or the grid can yield this value."""
        return isinstance(value, int) and not isinstance(value, bool) and value in self._steps()

    def is_countable(self) -> bool:
        """Return whether the grid contains every value that sampling can yield."""
        return self.step is not None or self.sampling == "linear"

    def grid(self) -> Sequence[int]:
        """Return the grid's values, ascending; 10 under log sampling without a step."""
        if self.step is not None:
            return self._steps()
        if self.sampling == "linear":
            return range(self.min, self.max + 1)
        last = GRID_POINTS_WITHOUT_STEP - 1
        return sorted({round(value_at(i / last, self.min, self.max, self.sampling)) for i in range(last + 1)})

    def sample(self, rng: random.Random) -> int:
        """Draw one value."""
        if self.is_countable():
            return rng.choice(self.grid())
        # Half a unit beyond the bounds: they would otherwise be drawn half as often as their neighbours.
        value = value_at(
            rng.random(), self.min - 0.5 if self.min > 1 else self.min, self.max + 0.5, self.sampling
        )
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
        self._check_range(self.min, self.max, self.step, self.default)
        if self.step is None:
            return self
        if closest_gap(self.min, self.step, self.sampling) < FINEST * max(abs(self.min), abs(self.max)):
            raise ValueError(
                f"step {self.step} is too small: neighbouring values up to {self.max} would be equal"
            )
        if self.default is not None:
            self._check_default(self.default, self._steps(self.step).nearest(self.default))
        return self

    def _steps(self, step: float) -> Steps:
        return Steps(self.min, self.max, step, self.sampling)

    def takes(self, value: Value) -> bool:
        """Return whether sampling or the grid can yield this value."""
        if isinstance(value, bool | str):
            return False
        return value in self._steps(self.step) if self.step else self.min <= value <= self.max

    def is_countable(self) -> bool:
        """Return whether the grid contains every value that sampling can yield."""
        return self.step is not None or self.min == self.max

    def grid(self) -> Sequence[float]:
        """Return the grid's values, ascending; without a step, 10 evenly spread values."""
        if self.min == self.max:
            return [self.min]
        if self.step is not None:
            return self._steps(self.step)
        last = GRID_POINTS_WITHOUT_STEP - 1
        return [rounded(value_at(i / last, self.min, self.max, self.sampling)) for i in range(last + 1)]

    def sample(self, rng: random.Random) -> float:
        """Draw one value."""
        if self.step is not None:
            return rng.choice(self.grid())
        # Rounding may put the value just outside the bounds.
        return min(max(value_at(rng.random(), self.min, self.max, self.sampling), self.min), self.max)


class BooleanParameter(_Hyperparameter):
    """True or false."""

    kind: Literal["boolean"]
    default: bool | None = None

    def grid(self) -> Sequence[bool]:
        """Return both values."""
        return [False, True]

    def sample(self, rng: random.Random) -> bool:
        """Draw one value."""
        return rng.random() < 0.5


class ChoiceParameter(_Hyperparameter):
    """One of the listed values, all of one type."""

    kind: Literal["choice"]
    values: tuple[Value, ...] = Field(min_length=1, max_length=10_000)
    default: Value | None = None

    @field_validator("values")
    @classmethod
    def _as_floats(cls, values: tuple[Value, ...]) -> tuple[Value, ...]:
        # Browsers write 0.0 as 0.
        if {type(value) for value in values} == {int, float}:
            return tuple(float(value) for value in values)
        return values

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len({type(v) for v in self.values}) > 1:
            raise ValueError(
                f"values {list(self.values)!r} mix types; give only strings, only integers or only floats"
            )
        if len(set(self.values)) < len(self.values):
            raise ValueError(f"values {list(self.values)!r} contain a value twice")
        if self.default is not None and not self.takes(self.default):
            raise ValueError(f"default {self.default!r} of {self.name!r} is not among {list(self.values)!r}")
        return self

    def grid(self) -> Sequence[Value]:
        """Return the values in the given order."""
        return list(self.values)

    def sample(self, rng: random.Random) -> Value:
        """Draw one value."""
        return rng.choice(self.values)


class FixedParameter(_Hyperparameter):
    """Always the same value."""

    kind: Literal["fixed"]
    value: Value

    def grid(self) -> Sequence[Value]:
        """Return the single value."""
        return [self.value]

    # All kinds have the same signature.
    def sample(self, rng: random.Random) -> Value:  # noqa: ARG002
        """Return the value."""
        return self.value


Parameter = Annotated[
    IntParameter | FloatParameter | BooleanParameter | ChoiceParameter | FixedParameter,
    Field(discriminator="kind"),
]


def first_value(parameter: Parameter) -> Value:
    """Return the value with which KerasTuner begins: the default, else the smallest or first value."""
    default: Value | None = getattr(parameter, "default", None)
    if default is not None:
        return default
    return parameter.min if isinstance(parameter, IntParameter | FloatParameter) else parameter.grid()[0]


def describe_values(parameter: Parameter) -> str:
    """Describe a hyperparameter's values in a few words."""
    if isinstance(parameter, IntParameter | FloatParameter):
        noun = "integers" if parameter.kind == "int" else "numbers"
        step = "" if parameter.step is None else f" in steps of {parameter.step}"
        if parameter.step is not None and parameter.sampling != "linear":
            step = f" in factors of {parameter.step}"
        return f"{noun} from {parameter.min} to {parameter.max}{step}"
    values = list(parameter.grid())
    more = f" and {len(values) - SHOWN_VALUES} more" if len(values) > SHOWN_VALUES else ""
    return ", ".join(repr(value) for value in values[:SHOWN_VALUES]) + more
