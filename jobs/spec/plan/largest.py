"""Finds the largest model in a search space."""

from collections.abc import Iterator, Set
from itertools import islice
from typing import Any

from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.training_memory import DeviceMemory, memory_per_device
from jobs.spec.space.probes import extremes
from jobs.spec.space.search_space import (
    ChoiceParameter,
    FixedParameter,
    Parameter,
    Value,
    grid,
)
from jobs.spec.space.searchable import TEMPLATE
from jobs.spec.space.values import apply_values
from jobs.spec.templates import TEMPLATES

TRIED = 256
"""The most configurations whose memory is computed."""

FIT_SIZES = frozenset(
    {"batch_size", "optimizer", "ema/momentum", "optimizer_args/gradient_accumulation_steps"}
    | {f"optimizer_args/{name}" for name in ("momentum", "amsgrad", "centered")}
)
"""Fit fields that affect a device's memory, in addition to the template's `shaping` arguments."""


def with_values(spec: ExperimentSpec, values: dict[str, Any]) -> ExperimentSpec:
    """Return a spec with these hyperparameter values."""
    return apply_values(spec, values) if values else spec


def _shaping(spec: ExperimentSpec) -> frozenset[str]:
    """Return the hyperparameters that affect which variables the model has."""
    others = {f"{name}/{argument}" for name, info in TEMPLATES.items() for argument in info.shaping}
    return spec.model.info.shaping | others | {TEMPLATE}


def largest(spec: ExperimentSpec, profile: Profile) -> tuple[dict[str, Any], DeviceMemory | None]:
    """Return the searched values that need the most memory per device, and that memory.

    Memory grows with each size, so only extreme values are combined. The memory is None if no combination is
    valid.
    """
    best: tuple[dict[str, Any], DeviceMemory | None] = ({}, None)
    sizing = FIT_SIZES | _shaping(spec)
    for values in _extreme_values(spec, sizing):
        sizes = {name: value for name, value in values.items() if name in sizing}
        try:
            memory = memory_per_device(with_values(spec, sizes), profile)
        except ValueError:
            # Reported by `checks.data.problems`.
            continue
        if best[1] is None or memory.total > best[1].total:
            best = (sizes, memory)
    return best


def extreme_shapes(spec: ExperimentSpec) -> Iterator[dict[str, Value]]:
    """Yield all combinations of the extremes of the searched values that affect variables."""
    yield from _extreme_values(spec, _shaping(spec))


def _extreme_values(spec: ExperimentSpec, sizing: Set[str]) -> Iterator[dict[str, Value]]:
    """Yield all combinations of the searched values' extremes, those with the largest first."""
    space = spec.search.space if spec.search is not None else ()
    varied = sizing | {condition.name for parameter in space for condition in parameter.conditions()}
    return islice(grid(tuple(_only_extremes(parameter, varied) for parameter in space)), TRIED)


def _only_extremes(parameter: Parameter, varied: Set[str]) -> Parameter:
    """Return the hyperparameter with only its extreme values, or with one value if it need not vary."""
    values = tuple(extremes(parameter))
    # The largest float is enough: memory depends only on whether one, such as a momentum, is 0.
    if parameter.kind == "float" or parameter.name not in varied:
        return FixedParameter(kind="fixed", name=parameter.name, value=values[0], when=parameter.when)
    return ChoiceParameter(kind="choice", name=parameter.name, values=values, when=parameter.when)
