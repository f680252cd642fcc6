"""Proposes a smaller search space around a search's best configuration."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

from jobs.spec.space.hyperparameters import describe_values
from jobs.spec.space.narrowing import narrow_space
from jobs.spec.space.ranges import fraction_of, value_at
from jobs.spec.space.search_space import (
    FloatParameter,
    IntParameter,
    Parameter,
    Space,
    Value,
    Values,
)

SHARE = 0.5
"""The part of each range that is kept, in the range's own scale."""
EDGE = 0.05
"""A best value within this part of the range from a bound is at the edge."""


def shrink_space(space: Space, best: Values, good: Sequence[Values]) -> Space:
    """Halve each numeric range around the best value.

    Choices and booleans keep the values that the best and other good configurations have. Hyperparameters
    that are inactive in the best configuration keep their values.

    Args:
        space: the present space.
        best: the best configuration.
        good: other good configurations.
    """
    changes: list[dict[str, Any]] = []
    for parameter in space:
        if parameter.name in best and parameter.kind != "fixed":
            good_values = {values[parameter.name] for values in good if parameter.name in values}
            changes.append({"name": parameter.name, **_change(parameter, best[parameter.name], good_values)})
    return narrow_space(space, changes) if changes else space


def _change(parameter: Parameter, best: Value, good_values: Iterable[Value]) -> dict[str, Any]:
    if isinstance(parameter, IntParameter | FloatParameter):
        return _range(parameter, float(best))
    values = [value for value in parameter.grid() if value == best or value in good_values]
    if len(values) == 1:
        return {"kind": "fixed", "value": values[0]}
    return {"values": values} if parameter.kind == "choice" else {}


def _range(parameter: IntParameter | FloatParameter, best: float) -> dict[str, Any]:
    """Return the new bounds. Values on steps stay on steps."""
    low, high, sampling = float(parameter.min), float(parameter.max), parameter.sampling
    middle = fraction_of(best, low, high, sampling)
    first = min(max(middle - SHARE / 2, 0.0), 1.0 - SHARE)
    least, most = value_at(first, low, high, sampling), value_at(first + SHARE, low, high, sampling)
    if parameter.step is not None or isinstance(parameter, IntParameter):
        return _on_steps(parameter, best, least, most)
    least, most = (float(f"{bound:.3g}") for bound in (least, most))
    return {"min": max(min(least, best), low), "max": min(max(most, best), high)}


def _on_steps(
    parameter: IntParameter | FloatParameter, best: float, least: float, most: float
) -> dict[str, Any]:
    if parameter.step is None:
        bounds = max(int(least), int(parameter.min)), min(-int(-most // 1), int(parameter.max))
        return {"min": bounds[0], "max": bounds[1]}
    # Bounds off the steps would shift all values of the new range. There may be billions of steps.
    values = parameter.grid()
    first, last = bisect_left(values, min(least, best)), bisect_right(values, max(most, best)) - 1
    if first >= last:
        return {"kind": "fixed", "value": values[first]}
    return {"min": values[first], "max": values[last], "step": parameter.step}


def bounds_at_best(space: Space, best: Values) -> dict[str, float]:
    """Return the bounds that the best values have reached. Better values may lie beyond."""
    bounds = {}
    for parameter in space:
        value = best.get(parameter.name)
        if not isinstance(parameter, IntParameter | FloatParameter) or isinstance(value, str | None):
            continue
        if parameter.min == parameter.max:
            continue
        place = fraction_of(float(value), float(parameter.min), float(parameter.max), parameter.sampling)
        if place <= EDGE or place >= 1 - EDGE:
            bounds[parameter.name] = float(parameter.min if place <= EDGE else parameter.max)
    return bounds


def describe_changes(old: Space, new: Space) -> list[str]:
    """Describe each changed hyperparameter in a few words."""
    now = {parameter.name: parameter for parameter in new}
    descriptions = []
    for parameter in old:
        changed = now.get(parameter.name)
        if changed is None:
            descriptions.append(f"{parameter.name} is no longer searched")
        elif (after := _values(changed)) != (before := _values(parameter)):
            descriptions.append(f"{parameter.name} {after}, instead of {before}")
    return descriptions


def _values(parameter: Parameter) -> str:
    if isinstance(parameter, IntParameter | FloatParameter):
        return f"{parameter.min:g} to {parameter.max:g}"
    return describe_values(parameter)
