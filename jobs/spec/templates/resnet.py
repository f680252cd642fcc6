"""Registers the template `resnet`: residual convolution blocks with batch normalization."""

import math
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from jobs.spec.base import Frozen
from jobs.spec.data.profile import Profile
from jobs.spec.templates.activations import ACTIVATION_RANGE, Activation
from jobs.spec.templates.info import TemplateInfo
from jobs.spec.templates.layers import (
    Layer,
    Shape,
    Variable,
    batch_normalization,
    without_variables,
)

STEM_KERNELS = {"small": (3, 1), "large": (7, 2)}
"""Kernel size and stride of the first convolution."""


class ResnetArgs(Frozen):
    """Normalized image → stem → `stages` × `blocks` residual blocks → average by channel → head.

    Each stage after the first halves both sides and doubles the channels.
    """

    filters: int = Field(default=16, ge=1, le=256, title="Filters", description="Of the first stage.")
    blocks: int = Field(default=1, ge=1, le=16, title="Blocks", description="In each stage.")
    stages: int = Field(default=3, ge=1, le=5, title="Stages", description="Each doubles the filters.")
    stem: Literal["small", "large"] = Field(
        default="small",
        title="Stem",
        description="small: 3 × 3; large: 7 × 7 with pooling, for images of 100 pixels and more.",
    )
    dropout: float = Field(default=0.0, ge=0, lt=1, title="Dropout")
    activation: Activation = Field(default="relu", title="Activation")


def layers(args: ResnetArgs, profile: Profile) -> Iterator[Layer]:
    """List the hidden layers."""
    image = profile.input_shape
    height, width, channels = image if len(image) == 3 else (*image, 1)[:3]
    kernel, stride = STEM_KERNELS[args.stem]
    output = (*_strided(height, width, stride), args.filters)
    yield from _convolution("stem", kernel, channels, output)
    yield without_variables("stem_activation", output)
    if args.stem == "large":
        output = (*_strided(output[0], output[1], 2), args.filters)
        yield without_variables("stem_pool", output)
    for stage in range(1, args.stages + 1):
        for block in range(1, args.blocks + 1):
            stride = 2 if stage > 1 and block == 1 else 1
            filters = args.filters * 2 ** (stage - 1)
            yield from _block(f"{stage}_{block}", output, filters, stride)
            output = (*_strided(output[0], output[1], stride), filters)
    yield without_variables("average", (output[2],))
    if args.dropout:
        yield without_variables("dropout", (output[2],))


def _strided(height: int, width: int, stride: int) -> tuple[int, int]:
    """Compute the output sides after a convolution or a pooling with padding."""
    return math.ceil(height / stride), math.ceil(width / stride)


def _convolution(name: str, kernel: int, channels: int, output: Shape) -> Iterator[Layer]:
    """Yield a convolution without bias and its batch normalization."""
    variable = Variable(f"{name}_conv/kernel", (kernel, kernel, channels, output[2]))
    yield Layer(f"{name}_conv", (variable,), output)
    yield batch_normalization(f"{name}_norm", output[2])._replace(output=output)


def _block(name: str, image: Shape, filters: int, stride: int) -> Iterator[Layer]:
    output = (*_strided(image[0], image[1], stride), filters)
    yield from _convolution(f"block_{name}_1", 3, image[2], output)
    yield without_variables(f"block_{name}_1_activation", output)
    main = list(_convolution(f"block_{name}_2", 3, filters, output))
    if image == output:
        yield from main
    else:
        shortcut = _convolution(f"block_{name}_shortcut", 1, image[2], output)
        # Keras orders layers by their distance from the output.
        yield from (layer for pair in zip(shortcut, main, strict=True) for layer in pair)
    yield without_variables(f"block_{name}_add", output)
    yield without_variables(f"block_{name}_activation", output)


INFO = TemplateInfo(
    name="resnet",
    label="Residual network",
    help="residual blocks of convolutions, for images",
    arguments=ResnetArgs,
    builder="workers.engine.models.templates.resnet:resnet",
    data_kinds=("image",),
    shaping=frozenset({"filters", "blocks", "stages", "stem"}),
    ranges={
        "filters": {"kind": "choice", "values": [8, 16, 32]},
        "blocks": {"kind": "int", "min": 1, "max": 3},
        "stages": {"kind": "int", "min": 2, "max": 4},
        "stem": {"kind": "choice", "values": ["small", "large"]},
        "dropout": {"kind": "float", "min": 0.0, "max": 0.5, "step": 0.1},
        "activation": ACTIVATION_RANGE,
    },
    searched=("filters", "blocks", "dropout"),
    initial_arguments=("filters", "blocks", "stages", "dropout"),
    layers=layers,
    traced=frozenset({"dropout"}),
)
