"""Builds the layers that turn the indices in a table's input into vectors."""

from collections.abc import Iterator
from typing import Any

import keras

from jobs.contracts.templates.layers import embedding_width
from workers.engine.models.templates.site import Site


def with_embeddings(site: Site, inputs: Any, normalized: Any) -> Any:
    """Return the normalized input with a vector in place of each index, (rows, numbers).

    Args:
        site: of the model; its profile lists the positions that are indices.
        inputs: the model's input, (rows, positions) float32.
        normalized: the same after the normalization.
    """
    if not site.profile.embedded:
        return normalized
    return keras.layers.Concatenate(**site.named("columns"))(list(_parts(site, inputs, normalized)))


def _parts(site: Site, inputs: Any, normalized: Any) -> Iterator[Any]:
    start = 0
    for number, block in enumerate(site.profile.embedded, start=1):
        if block.start > start:
            yield normalized[:, start : block.start]
        # From the input: a 16-bit float cannot represent all indices. Unlike a layer, an operation does not
        # cast its input to the type it computes in.
        index = keras.ops.cast(inputs[:, block.start : block.start + 1], "int32")
        name = f"embedding_{number}"
        vector = keras.layers.Embedding(block.size, embedding_width(block.size), **site.named(name))(index)
        yield keras.layers.Flatten(**site.named(f"{name}_flat"))(vector)
        start = block.start + 1
    if start < normalized.shape[1]:
        yield normalized[:, start:]
