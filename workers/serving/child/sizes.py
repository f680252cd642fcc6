"""The sizes in one row's inputs, for models whose signature leaves some open."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from jobs.spec.signature import TensorSpec

# The shape of each input without the batch dimension, in the signature's order.
Sizes = tuple[tuple[int, ...], ...]

# Lengths inside a wider gap are not likely to come.
_MAX_GAP = 32


def fits(sizes: Sizes, specs: Sequence[TensorSpec]) -> bool:
    """Return whether rows with these sizes match the signature."""
    return [len(shape) for shape in sizes] == [len(spec.shape) for spec in specs] and all(
        want in (None, have) and have > 0
        for shape, spec in zip(sizes, specs, strict=True)
        for want, have in zip(spec.shape, shape, strict=True)
    )


def between(seen: Iterable[Sizes], specs: Sequence[TensorSpec]) -> list[Sizes]:
    """Return the sizes whose length lies in a small gap between two seen lengths.

    Only for models with one length: all open sizes of a row are equal, as with tokens and their mask.

    Args:
        seen: sizes that fit the signature.
        specs: the inputs.
    """
    lengths = sorted({length for sizes in seen if (length := _length(sizes, specs)) is not None})
    return [
        tuple(tuple(length if want is None else want for want in spec.shape) for spec in specs)
        for low, high in pairwise(lengths)
        if high - low <= _MAX_GAP
        for length in range(low + 1, high)
    ]


def _length(sizes: Sizes, specs: Sequence[TensorSpec]) -> int | None:
    """Return the value that all open sizes share; None if they differ."""
    values = {
        have
        for shape, spec in zip(sizes, specs, strict=True)
        for want, have in zip(spec.shape, shape, strict=True)
        if want is None
    }
    return values.pop() if len(values) == 1 else None
