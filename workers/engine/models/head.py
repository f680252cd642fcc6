"""Builds a model's output layer, and what follows it."""

from collections.abc import Collection, Iterator
from itertools import count
from typing import Any

import keras

from jobs.spec.data.profile import Profile
from jobs.spec.plan.variables import head_units
from workers.engine.errors import BadSpec
from workers.engine.models.scaling import Scaling

ACTIVATIONS = {"multiclass": "softmax", "binary": "sigmoid", "multilabel": "sigmoid", "regression": "linear"}
POOLING = {3: "GlobalAveragePooling1D", 4: "GlobalAveragePooling2D", 5: "GlobalAveragePooling3D"}
"""By the number of axes of the features, the rows included."""


def head(
    features: Any, profile: Profile, scaling: Scaling, *, taken: Collection[str] = (), dtype: str = "float32"
) -> Any:
    """Return predictions from features: their average over positions, a dense layer, the target's unit.

    Args:
        features: (rows, …, size).
        profile: the data set's profile.
        scaling: measured on the training part; it has the unit for a regression's target.
        taken: names that other layers of the model have.
        dtype: the dtype policy of its layers.

    Raises:
        BadSpec: the features have a shape from which no head can be made.
    """
    if (pooling := POOLING.get(len(features.shape))) is not None:
        features = getattr(keras.layers, pooling)(name=_free("pooling", taken))(features)
    if len(features.shape) != 2 or features.shape[-1] is None:
        raise BadSpec(f"no head can be put on features of shape {tuple(features.shape[1:])}")
    outputs = keras.layers.Dense(
        head_units(profile),
        activation=ACTIVATIONS[profile.task],
        dtype=dtype,
        name=_free("output", taken),
    )(features)
    return in_unit_of_target(outputs, scaling, name=_free("target_scale", taken), dtype=dtype)


def in_unit_of_target(outputs: Any, scaling: Scaling, **named: Any) -> Any:
    """Return a regression's standardized predictions in the target's own unit; others unchanged."""
    if scaling.y_mean is None or scaling.y_variance is None:
        return outputs
    return keras.layers.Normalization(
        mean=scaling.y_mean.tolist(), variance=scaling.y_variance.tolist(), invert=True, **named
    )(outputs)


def _free(name: str, taken: Collection[str]) -> str:
    return next(candidate for candidate in _numbered(name) if candidate not in taken)


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in count(1))
