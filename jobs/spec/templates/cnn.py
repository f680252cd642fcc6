"""Registers the template `cnn`: convolutions with pooling and a dense layer."""

import math
from collections.abc import Iterator

from pydantic import Field

from jobs.spec.base import Frozen
from jobs.spec.data.profile import Profile
from jobs.spec.templates.activations import ACTIVATION_RANGE, Activation
from jobs.spec.templates.info import TemplateInfo
from jobs.spec.templates.layers import Layer, Shape, Variable, dense_block, without_variables


class CnnArgs(Frozen):
    """Normalized image → `layers` × (Conv → activation → pool) → Dense(units) → head."""

    filters: int = Field(default=32, ge=1, le=4096, title="Filters", description="Of each convolution.")
    kernel: int = Field(default=3, ge=1, le=15, title="Kernel size")
    layers: int = Field(default=2, ge=1, le=16, title="Layers")
    units: int = Field(default=64, ge=1, le=65_536, title="Units", description="Of each dense layer.")
    dropout: float = Field(default=0.0, ge=0, lt=1, title="Dropout")
    activation: Activation = Field(default="relu", title="Activation")


def layers(args: CnnArgs, profile: Profile) -> Iterator[Layer]:
    """List the hidden layers."""
    blocks = list(_convolutions(args, profile.input_shape))
    yield from blocks
    yield from dense_block(1, math.prod(blocks[-1].output), args.units, dropout=args.dropout)


def _convolutions(args: CnnArgs, image: Shape) -> Iterator[Layer]:
    # Images in shades of grey may have no axis for channels.
    height, width, channels = image if len(image) == 3 else (*image, 1)[:3]
    for i in range(1, args.layers + 1):
        kernel = (args.kernel, args.kernel, channels, args.filters)
        variables = Variable(f"conv_{i}/kernel", kernel), Variable(f"conv_{i}/bias", (args.filters,))
        channels = args.filters
        yield Layer(f"conv_{i}", variables, (height, width, channels))
        yield without_variables(f"conv_activation_{i}", (height, width, channels))
        # Pooling halves both sides, rounded down, so it ends before one of them would be 0.
        if min(height, width) >= 2:
            height, width = height // 2, width // 2
            yield without_variables(f"pool_{i}", (height, width, channels))


INFO = TemplateInfo(
    name="cnn",
    label="Convolutional network",
    help="convolutions and pooling, for images",
    arguments=CnnArgs,
    builder="workers.engine.models.templates.cnn:cnn",
    data_kinds=("image",),
    shaping=frozenset({"filters", "kernel", "layers", "units"}),
    ranges={
        "filters": {"kind": "choice", "values": [16, 32, 64]},
        "kernel": {"kind": "choice", "values": [3, 5]},
        "layers": {"kind": "int", "min": 1, "max": 3},
        "units": {"kind": "int", "min": 16, "max": 128, "step": 16},
        "dropout": {"kind": "float", "min": 0.0, "max": 0.5, "step": 0.1},
        "activation": ACTIVATION_RANGE,
    },
    searched=("filters", "units", "dropout"),
    initial_arguments=("filters", "units", "layers", "dropout"),
    layers=layers,
    width="units",
    traced=frozenset({"dropout"}),
)
