"""Registers KerasTuner's hypermodel `HyperResNet`: deep residual networks with bottlenecks.

The ranges come from `src/applications/resnet.py` in keras-tuner 1.4.8; a test compares them.
"""

from typing import Literal

from pydantic import Field

from jobs.spec.base import Frozen
from jobs.spec.templates.info import TemplateInfo


class HyperResNetArgs(Frozen):
    """Normalized image → strided stem → four stacks of residual blocks with bottlenecks → pooling → head.

    The first stack and the last one have three blocks each. All together divide the sides by 32.
    """

    version: Literal["v1", "v2", "next"] = Field(
        default="v2",
        title="Version",
        description="v2 normalizes before each convolution; next has grouped convolutions (ResNeXt).",
    )
    # KerasTuner gives two layers of v2 the same name if a stack has one block.
    conv3_depth: int = Field(default=4, ge=2, le=64, title="Blocks of the second stack")
    conv4_depth: int = Field(default=6, ge=2, le=64, title="Blocks of the third stack")
    pooling: Literal["avg", "max"] = Field(default="avg", title="Pooling")


INFO = TemplateInfo(
    name="HyperResNet",
    label="HyperResNet of KerasTuner",
    help="deep residual networks of 20 million weights and more, for images of 32 × 32 pixels or more with "
    "classes; very slow without a GPU",
    arguments=HyperResNetArgs,
    builder="workers.engine.models.templates.hypermodels:hyper_resnet",
    is_hypermodel=True,
    data_kinds=("image",),
    smallest_side=32,
    refused_tasks={"regression": "KerasTuner's HyperResNet is made for classes"},
    shaping=frozenset(HyperResNetArgs.model_fields) - {"pooling"},
    ranges={
        "version": {"kind": "choice", "values": ["v1", "v2", "next"], "default": "v2"},
        "conv3_depth": {"kind": "choice", "values": [4, 8]},
        "conv4_depth": {"kind": "choice", "values": [6, 23, 36]},
        "pooling": {"kind": "choice", "values": ["avg", "max"]},
    },
    fit_ranges={
        "optimizer": {"kind": "choice", "values": ["adam", "rmsprop", "sgd"]},
        "learning_rate": {"kind": "choice", "values": [0.1, 0.01, 0.001], "default": 0.01},
    },
    searched=tuple(HyperResNetArgs.model_fields),
    initial_arguments=tuple(HyperResNetArgs.model_fields),
    most_inputs=0,
    slow="HyperResNet is made for GPUs: its models have 20 million weights and more, too many for a CPU",
)
