"""Builds the layers for the template `cnn`."""

from typing import Any

import keras

from jobs.spec.templates.cnn import CnnArgs
from workers.engine.models.templates.blocks import dense_block, flat
from workers.engine.models.templates.site import Site


def cnn(site: Site, args: CnnArgs, x: Any) -> Any:
    """Return `layers` × (Conv → activation → pool) → flatten → dense block of `x`, (rows, units).

    There is no further pooling once height or width is 1.
    """
    for i in range(1, args.layers + 1):
        x = keras.layers.Conv2D(args.filters, args.kernel, padding="same", **site.named(f"conv_{i}"))(x)
        x = keras.layers.Activation(args.activation, **site.named(f"conv_activation_{i}"))(x)
        if min(x.shape[1:3]) >= 2:
            x = keras.layers.MaxPooling2D(2, **site.named(f"pool_{i}"))(x)
    x = flat(site, x)
    return dense_block(site, 1, x, units=args.units, activation=args.activation, dropout=args.dropout)
