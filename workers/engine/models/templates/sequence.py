"""Builds the layers for the template `sequence`."""

from typing import Any

import keras

from jobs.spec.templates.sequence import SequenceArgs
from workers.engine.models.templates.blocks import flat
from workers.engine.models.templates.site import Site


def sequence(site: Site, args: SequenceArgs, x: Any) -> Any:
    """Return `layers` × (LSTM, GRU or convolution → dropout?) of `x`, (rows, steps, numbers).

    Recurrent layers end with the state after the last step, (rows, units). Convolutions end with all steps
    that pooling has left, side by side.
    """
    length = x.shape[1]
    if (left_out := length - args.steps_of(length)) > 0:
        x = keras.layers.Cropping1D((left_out, 0), **site.named("last_steps"))(x)
    layer = _convolution if args.kind == "conv" else _recurrent
    for number in range(1, args.layers + 1):
        x = layer(site, args, number, x)
        if args.dropout:
            x = site.dropout(f"dropout_{number}")(x)
    return flat(site, x)


def _recurrent(site: Site, args: SequenceArgs, number: int, x: Any) -> Any:
    kind = keras.layers.LSTM if args.kind == "lstm" else keras.layers.GRU
    layer = kind(args.units, return_sequences=number < args.layers, **site.named(f"{args.kind}_{number}"))
    # Keras counts the cells of a process, and layout rules name variables by their path.
    layer.cell.name = "cell"
    return layer(x)


def _convolution(site: Site, args: SequenceArgs, number: int, x: Any) -> Any:
    """Return convolution → relu → pooling over two steps, as long as there are two."""
    layers = keras.layers
    x = layers.Conv1D(args.units, args.kernel_steps, padding="same", **site.named(f"conv_{number}"))(x)
    x = layers.Activation("relu", **site.named(f"conv_activation_{number}"))(x)
    return layers.MaxPooling1D(2, **site.named(f"pool_{number}"))(x) if x.shape[1] >= 2 else x
