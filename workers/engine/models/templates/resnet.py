"""Builds the layers for the template `resnet`."""

from typing import Any

import keras

from jobs.spec.templates.resnet import STEM_KERNELS, ResnetArgs
from workers.engine.models.templates.site import Site

MOMENTUM = 0.9
"""Share of the earlier moving statistics after a batch. With Keras' 0.99, those of a training of a hundred
batches are far from the statistics of its images."""


def resnet(site: Site, args: ResnetArgs, x: Any) -> Any:
    """Return stem → residual blocks → each channel's average → dropout? of `x`, (rows, channels).

    The blocks come from He et al., Deep Residual Learning for Image Recognition (2015), without
    bottlenecks: the activation follows the sum. A shortcut has a convolution where the shape changes.
    """
    kernel, stride = STEM_KERNELS[args.stem]
    x = _convolution(site, "stem", x, args.filters, kernel, stride)
    x = keras.layers.Activation(args.activation, **site.named("stem_activation"))(x)
    if args.stem == "large":
        x = keras.layers.MaxPooling2D(3, 2, padding="same", **site.named("stem_pool"))(x)
    for stage in range(1, args.stages + 1):
        for block in range(1, args.blocks + 1):
            stride = 2 if stage > 1 and block == 1 else 1
            x = _block(site, f"block_{stage}_{block}", x, args, args.filters * 2 ** (stage - 1), stride)
    x = keras.layers.GlobalAveragePooling2D(**site.named("average"))(x)
    return site.dropout("dropout")(x) if args.dropout else x


def _convolution(site: Site, name: str, x: Any, filters: int, kernel: int, stride: int) -> Any:
    """Return Conv → batch normalization of `x`, which subtracts a bias again."""
    x = keras.layers.Conv2D(
        filters, kernel, strides=stride, padding="same", use_bias=False, **site.named(f"{name}_conv")
    )(x)
    return keras.layers.BatchNormalization(momentum=MOMENTUM, **site.named(f"{name}_norm"))(x)


def _block(site: Site, name: str, x: Any, args: ResnetArgs, filters: int, stride: int) -> Any:
    y = _convolution(site, f"{name}_1", x, filters, 3, stride)
    y = keras.layers.Activation(args.activation, **site.named(f"{name}_1_activation"))(y)
    y = _convolution(site, f"{name}_2", y, filters, 3, 1)
    if x.shape != y.shape:
        x = _convolution(site, f"{name}_shortcut", x, filters, 1, stride)
    y = keras.layers.Add(**site.named(f"{name}_add"))([x, y])
    return keras.layers.Activation(args.activation, **site.named(f"{name}_activation"))(y)
