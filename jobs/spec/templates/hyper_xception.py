"""Registers KerasTuner's hypermodel `HyperXception`: separable convolutions with residual connections.

The ranges come from `src/applications/xception.py` in keras-tuner 1.4.8; a test compares them.
"""

from typing import Literal

from pydantic import Field

from jobs.spec.base import Frozen
from jobs.spec.templates.info import TemplateInfo


class HyperXceptionArgs(Frozen):
    """Normalized image → Conv → `num_residual_blocks` × residual → residual with pooling → dense → head.

    A residual block has two separable convolutions. The first convolution and the pooling divide both sides
    of the image. KerasTuner's dense layers have as many units as there are classes.
    """

    activation: Literal["relu", "selu"] = Field(default="relu", title="Activation")
    conv2d_num_filters: int = Field(
        default=64, ge=1, le=4096, title="Filters of the first convolution", description="Strided."
    )
    kernel_size: int = Field(
        default=3, ge=1, le=15, title="Kernel of the first convolution", description="Others have 3."
    )
    initial_strides: int = Field(
        default=2, ge=1, le=4, title="Stride of the first convolution", description="Divides both sides."
    )
    sep_num_filters: int = Field(
        default=256,
        ge=1,
        le=4096,
        title="Filters of separable convolutions",
        description="Twice as many in the last block.",
    )
    num_residual_blocks: int = Field(
        default=4, ge=1, le=32, title="Residual blocks", description="Of equal size, before the last one."
    )
    pooling: Literal["avg", "flatten", "max"] = Field(default="avg", title="Pooling")
    num_dense_layers: int = Field(default=1, ge=1, le=8, title="Dense layers")
    dropout_rate: float = Field(
        default=0.5, ge=0, lt=1, title="Dropout rate", description="After each dense layer."
    )
    dense_use_bn: bool = Field(
        default=True,
        title="Batch normalization of dense layers",
        description="Without effect under the activation selu.",
    )


INFO = TemplateInfo(
    name="HyperXception",
    label="HyperXception of KerasTuner",
    help="separable convolutions with residual connections, for images of 8 × 8 pixels or more with classes; "
    "slow without a GPU",
    arguments=HyperXceptionArgs,
    builder="workers.engine.models.templates.hypermodels:hyper_xception",
    is_hypermodel=True,
    data_kinds=("image",),
    # The first convolution and the last block divide both sides by 2, so a smaller image has one position.
    smallest_side=8,
    refused_tasks={"regression": "the width of KerasTuner's dense layers is the number of classes"},
    shaping=frozenset(HyperXceptionArgs.model_fields) - {"dropout_rate"},
    ranges={
        "activation": {"kind": "choice", "values": ["relu", "selu"]},
        "conv2d_num_filters": {"kind": "choice", "values": [32, 64, 128], "default": 64},
        "kernel_size": {"kind": "choice", "values": [3, 5]},
        "initial_strides": {"kind": "choice", "values": [2]},
        "sep_num_filters": {"kind": "int", "min": 128, "max": 768, "step": 128, "default": 256},
        "num_residual_blocks": {"kind": "int", "min": 2, "max": 8, "default": 4},
        "pooling": {"kind": "choice", "values": ["avg", "flatten", "max"]},
        "num_dense_layers": {"kind": "int", "min": 1, "max": 3},
        "dropout_rate": {"kind": "float", "min": 0.0, "max": 0.6, "step": 0.1, "default": 0.5},
        "dense_use_bn": {"kind": "boolean", "default": True},
    },
    fit_ranges={"learning_rate": {"kind": "choice", "values": [1e-3, 1e-4, 1e-5]}},
    # KerasTuner's only value of `initial_strides` is 2.
    searched=tuple(name for name in HyperXceptionArgs.model_fields if name != "initial_strides"),
    initial_arguments=tuple(HyperXceptionArgs.model_fields),
    traced=frozenset({"dropout_rate"}),
    most_inputs=0,
    slow="HyperXception is made for GPUs: on a CPU, its epochs take far longer than those of cnn",
)
