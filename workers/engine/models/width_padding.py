"""Builds models wider than requested, so that trials with several widths share one compiled program.

The additional units' kernels, biases and outgoing weights are 0. If the activation is 0 at 0, they stay at 0:
their inputs, outputs and gradients are 0, all supported optimizers leave a zero weight without gradient
unchanged, and batch normalization keeps zeros. The other units compute the same values as without them,
except for the addition order and for the units that dropout selects.

Checkpoints store the narrow arrays, so a training can be resumed at any width.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.variables import parameters, variables
from workers.engine.arrays import Array
from workers.engine.models.devices.shards import SpreadArray

MAX_WIDTH_RATIO = 4
"""Maximum ratio of the built width to the requested one."""
MAX_STEP_FLOPS = 2e7
"""Maximum floating point operations of a wider training step: about 1 ms, where the extra cost is small."""
MAX_EXTRA_FLOPS = 4e10
"""Maximum additional operations of all trainings of a width: about as long as two compilations.

They are computed from the spec, not timed: so a resumed trial uses the same program as before, unless its
search was revised or the trial was continued meanwhile.
"""


class Widths:
    """Each variable's requested shape by its path. Variables that are not listed keep their own shape."""

    def __init__(self, exact: Mapping[str, tuple[int, ...]] | None = None) -> None:
        self._exact = dict(exact or {})

    def shape_of(self, variable: Any) -> tuple[int, ...]:
        """Return the requested shape for a variable, or for the optimizer's slot for it."""
        if (exact := self._exact.get(variable.path)) is not None:
            return exact
        # Keras names a slot after its variable: `dense_1/kernel` has the slot `adam/dense_1_kernel_momentum`.
        # The longest match wins, since the name of one variable may begin with that of another.
        slot = variable.path.rpartition("/")[2]
        fitting = [path for path in self._exact if slot.startswith(f"{path.replace('/', '_')}_")]
        return self._exact[max(fitting, key=len)] if fitting else tuple(variable.shape)

    def narrow(self, variables: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
        """Cut variables' arrays to their requested shapes. On several devices no model is wider."""
        pairs = zip(variables, arrays, strict=True)
        return [
            array if isinstance(array, SpreadArray) else array[_corner(self.shape_of(v))].copy()
            for v, array in pairs
        ]

    def widen(self, variables: Sequence[Any], arrays: Sequence[Array]) -> list[Array]:
        """Insert narrow arrays into copied variable values; the other values are unchanged."""
        widened = []
        for variable, array in zip(variables, arrays, strict=True):
            if array.shape == tuple(variable.shape) or array.shape != self.shape_of(variable):
                widened.append(array)  # a wrong shape is reported when the array is assigned
                continue
            wide = np.array(variable.value)
            wide[_corner(array.shape)] = array
            widened.append(wide)
        return widened


def _corner(shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Return the index for the first `shape` entries in an array along each axis."""
    return tuple(slice(size) for size in shape)


def widened(spec: ExperimentSpec, profile: Profile, rows: int) -> ExperimentSpec:
    """Return the spec with its search's largest width, if sharing one program is cheaper.

    At that width a step must still be fast, and the additional operations in all trainings planned at the
    requested width must cost less than compiling a program for it.

    Args:
        spec: a trial's, with its hyperparameters filled in.
        profile: the data set's profile.
        rows: the training row count.
    """
    argument, search = spec.model.info.width, spec.search
    if not argument or search is None or spec.mesh is not None:
        return spec
    width = getattr(spec.model.resolved(), argument)
    grids = [parameter.grid() for parameter in search.space if parameter.name == argument]
    widest = max((int(value) for grid in grids for value in grid), default=width)
    if not width < widest <= MAX_WIDTH_RATIO * width:
        return spec
    wide = spec.model.model_copy(update={"args": {**spec.model.args, argument: widest}})
    # Forward and backward pass: about 6 floating point operations per parameter and row.
    step, exact = (6 * spec.fit.batch_size * parameters(model, profile) for model in (wide, spec.model))
    steps = math.ceil(rows / spec.fit.batch_size) * spec.fit.epochs
    # An estimate: as if the search spread its trainings evenly over the widths.
    trainings = search.max_trials * search.executions_per_trial / max(map(len, grids))
    cheap = step <= MAX_STEP_FLOPS and (step - exact) * steps * trainings <= MAX_EXTRA_FLOPS
    return spec.model_copy(update={"model": wide}) if cheap else spec


def widths_of(spec: ExperimentSpec, profile: Profile) -> Widths:
    """Return the shapes requested by `spec`, however wide its model is built."""
    if not spec.model.info.width:
        return Widths()
    return Widths({variable.path: variable.shape for variable in variables(spec.model, profile)})


def padded(array: Array, shape: Sequence[int]) -> Array:
    """Return an array with shape `shape`, with `array` in its first corner and 0 elsewhere."""
    if math.prod(shape) == array.size:
        return array
    wide = np.zeros(tuple(shape), dtype=array.dtype)
    wide[_corner(array.shape)] = array
    return wide
