"""Search spaces: the kinds of hyperparameter, their conditions, their grid and their sampling.

Pure functions of the space, so the plan on a page, a grid search and a random search agree.
"""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from jobs.spec.base import Frozen

Value = bool | int | float | str
Values = Mapping[str, Value]
Sampling = Literal["linear", "log", "reverse_log"]

GRID_POINTS_WITHOUT_STEP = 10
"""How many grid points a float (or a log int) without a step gets, as in KerasTuner."""


class When(Frozen):
    """A hyperparameter is active only while its parent `name` has one of the values `in`."""

    name: str
    in_: tuple[Value, ...] = Field(alias="in", min_length=1)


class _Hyperparameter(Frozen):
    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_./-]{0,99}$")
    when: When | tuple[When, ...] | None = None

    def conditions(self) -> tuple[When, ...]:
        """Return the conditions, all of which must hold."""
        if self.when is None:
            return ()
        return (self.when,) if isinstance(self.when, When) else self.when

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


def _stepped(low: float, high: float, step: float, sampling: Sampling) -> list[float]:
    """List low, low+step (or low·step), … up to high inclusive, tolerant of rounding."""
    if sampling == "linear":
        count = math.floor((high - low) / step + 1e-9) + 1
        return [low + i * step for i in range(count)]
    count = math.floor(math.log(high / low) / math.log(step) + 1e-9) + 1
    return [low * step**i for i in range(count)]


def _at(fraction: float, low: float, high: float, sampling: Sampling) -> float:
    """Map a fraction in [0, 1] to [low, high] in the sampling scale."""
    if sampling == "log":
        return low * math.pow(high / low, fraction)
    if sampling == "reverse_log":
        return high + low - low * math.pow(high / low, 1 - fraction)
    return low + fraction * (high - low)


class IntParameter(_Range):
    """A whole number from `min` to `max` inclusive."""

    kind: Literal["int"]
    min: int
    max: int
    step: int | None = Field(default=None, ge=1)
    default: int | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        self._check(self.min, self.max, self.step, self.default)
        return self

    def grid(self) -> Sequence[int]:
        """List the grid's values, ascending."""
        if self.step is not None:
            return [round(v) for v in _stepped(self.min, self.max, self.step, self.sampling)]
        if self.sampling == "linear":
            return range(self.min, self.max + 1)
        spread = [_at(i / (GRID_POINTS_WITHOUT_STEP - 1), self.min, self.max, self.sampling)
                  for i in range(GRID_POINTS_WITHOUT_STEP)]  # fmt: skip
        return sorted({round(v) for v in spread})

    def sample(self, rng: random.Random) -> int:
        """Draw one value."""
        if self.step is not None or self.sampling == "linear":
            return rng.choice(self.grid())
        value = _at(rng.random(), self.min - 0.5 if self.min > 1 else self.min, self.max + 0.5, self.sampling)
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
        return self

    def grid(self) -> Sequence[float]:
        """List the grid's values, ascending; 10 evenly spread ones when there is no step."""
        if self.min == self.max:
            return [self.min]
        if self.step is not None:
            # 12 digits: 0.1 + 2 × 0.1 shall be 0.3 on every page and in every key
            return [float(f"{v:.12g}") for v in _stepped(self.min, self.max, self.step, self.sampling)]
        last = GRID_POINTS_WITHOUT_STEP - 1
        return [float(f"{_at(i / last, self.min, self.max, self.sampling):.12g}") for i in range(last + 1)]

    def sample(self, rng: random.Random) -> float:
        """Draw one value."""
        if self.step is not None:
            return rng.choice(self.grid())
        return min(max(_at(rng.random(), self.min, self.max, self.sampling), self.min), self.max)


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
        if self.default is not None and self.default not in self.values:
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
Space = tuple[Parameter, ...]


def check_space(space: Space) -> None:
    """Check names and conditions over the whole space.

    Raises:
        ValueError: a name stands twice, or a parent is missing or comes after its child.
    """
    seen: set[str] = set()
    for i, parameter in enumerate(space):
        if parameter.name in seen:
            raise ValueError(f"{i}.name: {parameter.name!r} stands twice")
        for condition in parameter.conditions():
            if condition.name not in seen:
                raise ValueError(
                    f"{i}.when: {parameter.name!r} depends on {condition.name!r}, which must stand before it"
                )
        seen.add(parameter.name)


def grid(space: Space) -> Iterator[dict[str, Value]]:
    """Yield every distinct configuration in a stable order; the last parameter varies fastest.

    Inactive hyperparameters are left out, so branches that differ only in them appear once.
    """

    def extend(values: dict[str, Value], rest: Sequence[Parameter]) -> Iterator[dict[str, Value]]:
        if not rest:
            yield values
            return
        head, *tail = rest
        if not head.is_active(values):
            yield from extend(values, tail)
            return
        for value in head.grid():
            yield from extend({**values, head.name: value}, tail)

    yield from extend({}, space)


def grid_size(space: Space, limit: int = 1_000_000) -> int:
    """Count the grid's configurations, stopping at `limit`."""
    if not any(parameter.conditions() for parameter in space):
        return min(math.prod(len(parameter.grid()) for parameter in space), limit)
    return sum(1 for _ in islice(grid(space), limit))


def sample(space: Space, rng: random.Random) -> dict[str, Value]:
    """Draw one configuration: each active hyperparameter on its own."""
    values: dict[str, Value] = {}
    for parameter in space:
        if parameter.is_active(values):
            values[parameter.name] = parameter.sample(rng)
    return values


def check_values(space: Space, values: Values) -> dict[str, Value]:
    """Check a configuration given by hand and put it in the space's order.

    Raises:
        ValueError: a value is missing, unknown, inactive or outside its range; names it.
    """
    checked: dict[str, Value] = {}
    for parameter in space:
        if not parameter.is_active(checked):
            continue
        if parameter.name not in values:
            raise ValueError(f"{parameter.name!r} is missing")
        value = values[parameter.name]
        _check_value(parameter, value)
        checked[parameter.name] = value
    if extra := set(values) - set(checked):
        raise ValueError(f"{sorted(extra)} are unknown or not active under these values")
    return checked


def _check_value(parameter: Parameter, value: Value) -> None:
    if isinstance(parameter, IntParameter | FloatParameter):
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        whole = not isinstance(parameter, IntParameter) or isinstance(value, int)
        if not (numeric and whole and parameter.min <= float(value) <= parameter.max):
            span = f"{parameter.kind} from {parameter.min} to {parameter.max}"
            raise ValueError(f"{parameter.name!r} takes {span}, not {value!r}")
    elif value not in parameter.grid():
        raise ValueError(f"{parameter.name!r} takes one of {list(parameter.grid())!r}, not {value!r}")
