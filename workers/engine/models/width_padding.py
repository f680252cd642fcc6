"""Models built wider than they shall be, so that trials of several widths share one compiled program.

Where an activation is 0 at 0, units whose kernels, biases and outgoing weights are 0 stay so: what reaches
them is 0, so what they send on is 0, and so are all their gradients; every optimizer of ours leaves a weight
with no gradient at 0, and batch normalization of zeros is zero. The rest of the model computes what it would
without them, but for the order in which products are added up, and for which units a dropout draws.

Checkpoints hold the narrow arrays: whoever goes on from one may build the model at any width.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.profile import Profile
from jobs.contracts.variables import parameters, variables
from workers.engine.data.table import Array

SURPLUS = 4
"""A model is at most so many times wider than it shall be."""
FLOPS = 2e7
"""Floating point operations of a training step up to which a wider one hardly costs time: about 1 ms."""
SURPLUS_FLOPS = 4e10
"""What all of a width's trainings may spend on the surplus at most: about as long as two compilations.

Planned from the spec, never timed: a trial that was interrupted goes on with the very program it began with,
unless its search was revised or it was continued meanwhile.
"""


class Widths:
    """Which part of each variable is meant, by its path; of a variable that is not listed, all."""

    def __init__(self, exact: Mapping[str, tuple[int, ...]] | None = None) -> None:
        self._exact = dict(exact or {})

    def shape_of(self, variable: Any) -> tuple[int, ...]:
        """Return the shape that a variable of the model, or a slot of the optimizer for it, shall have."""
        if (exact := self._exact.get(variable.path)) is not None:
            return exact
        slot = variable.path.rpartition("/")[2]
        fitting = [path for path in self._exact if slot.startswith(f"{path.replace('/', '_')}_")]
        return self._exact[max(fitting, key=len)] if fitting else tuple(variable.shape)

    def narrow(self, variables: Sequence[Any], arrays: Sequence[Array]) -> list[Array]:
        """Cut arrays of variables to what is meant of them."""
        pairs = zip(variables, arrays, strict=True)
        return [array[_corner(self.shape_of(v))].copy() for v, array in pairs]

    def widen(self, variables: Sequence[Any], arrays: Sequence[Array]) -> list[Array]:
        """Put narrow arrays into the variables' own, whose rest stays as it is."""
        return [self._widened(v, array) for v, array in zip(variables, arrays, strict=True)]

    def _widened(self, variable: Any, array: Array) -> Array:
        if array.shape != self.shape_of(variable) or array.shape == tuple(variable.shape):
            return array  # if it fits nowhere, whoever assigns it says so
        wide = np.array(variable.value)
        wide[_corner(array.shape)] = array
        return wide


def _corner(shape: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(size) for size in shape)


def widened(spec: ExperimentSpec, profile: Profile, rows: int) -> ExperimentSpec:
    """Return the spec with the width at which its model shares a program with the search's other widths.

    Trained at that width a step must still be quick, and all that a width is planned to train must not spend
    more on the surplus than a program of its own would cost.

    Args:
        spec: a trial's, with its hyperparameters filled in.
        profile: of the data set.
        rows: how many an epoch trains on.
    """
    argument, search = spec.model.info.width, spec.search
    if not argument or search is None or spec.mesh is not None:
        return spec
    width = getattr(spec.model.resolved(), argument)
    grids = [parameter.grid() for parameter in search.space if parameter.name == argument]
    widest = max((int(value) for grid in grids for value in grid), default=width)
    if not width < widest <= SURPLUS * width:
        return spec
    wide = spec.model.model_copy(update={"args": {**spec.model.args, argument: widest}})
    step, exact = (6 * spec.fit.batch_size * parameters(model, profile) for model in (wide, spec.model))
    steps = math.ceil(rows / spec.fit.batch_size) * spec.fit.epochs
    trainings = search.max_trials * search.executions_per_trial / max(map(len, grids))
    cheap = step <= FLOPS and (step - exact) * steps * trainings <= SURPLUS_FLOPS
    return spec.model_copy(update={"model": wide}) if cheap else spec


def widths_of(spec: ExperimentSpec, profile: Profile) -> Widths:
    """Return the shapes that a model of `spec` shall have, however wide it was built."""
    if not spec.model.info.width:
        return Widths()
    return Widths({variable.path: variable.shape for variable in variables(spec.model, profile)})


def padded(array: Array, shape: Sequence[int]) -> Array:
    """Return `array` in the corner of an array of `shape` that is 0 elsewhere."""
    if math.prod(shape) == array.size:
        return array
    wide = np.zeros(tuple(shape), dtype=array.dtype)
    wide[_corner(array.shape)] = array
    return wide
