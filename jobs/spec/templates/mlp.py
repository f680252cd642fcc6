"""Registers the template `mlp`: dense layers on a flattened input."""

import math
from collections.abc import Iterator

from pydantic import Field

from jobs.spec.base import Frozen
from jobs.spec.data.profile import Profile
from jobs.spec.templates.activations import ACTIVATION_RANGE, Activation
from jobs.spec.templates.info import TemplateInfo
from jobs.spec.templates.layers import Layer, dense_block

SMALL_IMAGE = 16 * 16
"""Images with at most this many pixels need no convolutions."""


class MlpArgs(Frozen):
    """Normalized vector → `layers` × (Dense(units) → batch norm? → activation → dropout) → head."""

    units: int = Field(
        default=64, ge=1, le=65_536, title="Units", description="Of each dense or recurrent layer."
    )
    layers: int = Field(default=1, ge=1, le=64, title="Layers")
    dropout: float = Field(default=0.0, ge=0, lt=1, title="Dropout")
    activation: Activation = Field(default="relu", title="Activation")
    batch_norm: bool = Field(default=False, title="Batch normalization")


def layers(args: MlpArgs, profile: Profile) -> Iterator[Layer]:
    """List the hidden layers."""
    inputs = math.prod(profile.input_shape)
    for i in range(1, args.layers + 1):
        yield from dense_block(i, inputs, args.units, dropout=args.dropout, batch_norm=args.batch_norm)
        inputs = args.units


def suits(profile: Profile) -> bool:
    """Return whether the data are small images, or vectors that have more than texts."""
    if profile.kind == "sequence":
        return False
    if profile.kind == "vector":
        return not profile.texts or len(profile.texts) < len(profile.features)
    return math.prod(profile.input_shape[:2]) <= SMALL_IMAGE


INFO = TemplateInfo(
    name="mlp",
    label="Multilayer perceptron",
    help="dense layers, for tables and small images",
    arguments=MlpArgs,
    builder="workers.engine.models.templates.mlp:mlp",
    shaping=frozenset({"units", "layers", "batch_norm"}),
    ranges={
        "units": {"kind": "int", "min": 16, "max": 128, "step": 16},
        "layers": {"kind": "int", "min": 1, "max": 3},
        "dropout": {"kind": "float", "min": 0.0, "max": 0.5, "step": 0.1},
        "activation": ACTIVATION_RANGE,
        "batch_norm": {"kind": "boolean"},
    },
    searched=("units", "dropout"),
    initial_arguments=("units", "layers", "dropout"),
    suits=suits,
    layers=layers,
    width="units",
    traced=frozenset({"dropout"}),
)
