"""Lists the layers that turn the indices in a table's input into vectors."""

from collections.abc import Iterable

from jobs.spec.data.profile import InputBlock, Profile
from jobs.spec.templates.layers import (
    Layer,
    Shape,
    Variable,
    embedding_width,
    without_variables,
)


def column_layers(profile: Profile, *, tokens: bool) -> list[Layer]:
    """Return the embeddings for a table's input and, last, all columns side by side; none without indices.

    Args:
        profile: the data's profile.
        tokens: whether to include texts' words, as the average of their vectors.
    """
    named = {f"embedding_{number}": block for number, block in enumerate(profile.embedded, start=1)}
    if not named:
        return []
    texts = {name: block for name, block in named.items() if block.kind == "tokens"}
    # Keras lists layers that are farther from the output first, and the average of a text comes after its
    # embedding.
    used = {**(texts if tokens else {}), **{name: named[name] for name in named if name not in texts}}
    *steps, positions = profile.input_shape
    layers = [_embedding(name, block, tuple(steps)) for name, block in used.items()]
    vectors = sum(layer.output[-1] for layer in layers)
    width = positions - positions_of(named.values()) + vectors
    return [*layers, without_variables("columns", (*steps, width))] if width else []


def positions_of(blocks: Iterable[InputBlock]) -> int:
    """Count the positions in some blocks."""
    return sum(block.positions for block in blocks)


def _embedding(name: str, block: InputBlock, steps: Shape) -> Layer:
    width = embedding_width(block.size)
    output = (block.positions, width) if block.kind == "tokens" else (*steps, width)
    return Layer(name, (Variable(f"{name}/embeddings", (block.size, width)),), output)
