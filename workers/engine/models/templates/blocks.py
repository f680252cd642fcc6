"""Builds layers that several templates share."""

from typing import Any

import keras

from workers.engine.models.templates.site import Site


def flat(site: Site, x: Any) -> Any:
    """Return `x`, (rows, …), as (rows, features)."""
    return keras.layers.Flatten(**site.named("flatten"))(x) if len(x.shape) > 2 else x


def dense_block(
    site: Site, i: int, x: Any, *, units: int, activation: str, dropout: float, batch_norm: bool = False
) -> Any:
    """Return Dense → batch normalization? → activation → dropout? of `x`, (rows, features) to (rows, units).

    Args:
        site: the model's site.
        i: counts the blocks from 1, for the layer names.
        x: the input.
        units: the dense layer's width.
        activation: by Keras' name.
        dropout: the rate; 0 leaves the layer out.
        batch_norm: whether to normalize over the batch before the activation.
    """
    # Batch normalization subtracts a bias again: its gradient is rounding noise, which Adam amplifies.
    x = keras.layers.Dense(units, use_bias=not batch_norm, **site.named(f"dense_{i}"))(x)
    if batch_norm:
        x = keras.layers.BatchNormalization(**site.named(f"batch_norm_{i}"))(x)
    x = keras.layers.Activation(activation, **site.named(f"activation_{i}"))(x)
    return site.dropout(f"dropout_{i}")(x) if dropout else x
