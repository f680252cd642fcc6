"""Builds the layers that turn the indices in a table's input into vectors."""

from collections.abc import Iterator
from typing import Any

import keras

from jobs.spec.data.profile import InputBlock
from jobs.spec.templates.layers import embedding_width
from workers.engine.models.templates.site import Site
from workers.engine.models.templates.tokens import mean_of_words, positions, token_ids


def with_embeddings(site: Site, normalized: Any, *, tokens: bool) -> Any:
    """Return the normalized input with a vector in place of each column's indices, (rows, numbers).

    None if no input is left.

    Args:
        site: the model's site; its profile lists the positions that are indices.
        normalized: the model's input after the normalization, (rows, positions), or (rows, steps, positions).
        tokens: whether a text becomes the average over its words' vectors; else it is left out.
    """
    if not site.profile.embedded:
        return normalized
    parts = list(_parts(site, normalized, tokens))
    return keras.layers.Concatenate(**site.named("columns"))(parts) if parts else None


def _parts(site: Site, normalized: Any, tokens: bool) -> Iterator[Any]:
    start = 0
    for number, block in enumerate(site.profile.embedded, start=1):
        if block.start > start:
            yield positions(normalized, start, block.start)
        if block.kind == "index":
            vector = _vectors(site, block, number)
            if len(normalized.shape) == 2:
                yield keras.layers.Flatten(**site.named(f"embedding_{number}_flat"))(vector)
            else:
                shape = (vector.shape[1], vector.shape[3])
                yield keras.layers.Reshape(shape, **site.named(f"embedding_{number}_flat"))(vector)
        elif tokens:
            yield mean_of_words(_vectors(site, block, number), token_ids(site.inputs, block))
        start = block.start + block.positions
    if start < normalized.shape[-1]:
        yield positions(normalized, start, normalized.shape[-1])


def _vectors(site: Site, block: InputBlock, number: int) -> Any:
    """Return a vector for each index in a column, (rows, positions, width), or (rows, steps, …)."""
    layer = keras.layers.Embedding(
        block.size, embedding_width(block.size), **site.named(f"embedding_{number}")
    )
    return layer(token_ids(site.inputs, block))
