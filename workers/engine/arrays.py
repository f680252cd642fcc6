"""Names the types of NumPy arrays, whose shapes are in docstrings, and the resolution of their numbers."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
"""An array of any type, such as features, targets or predictions."""
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class BlockwiseArray(Protocol):
    """An array that is too large to be in host memory at once. It is read in blocks."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def view(self, dtype: Any, /) -> "BlockwiseArray":
        """Return the array whose bytes are read as another type with the same size."""

    def blocks(self) -> Iterator[Array]:
        """Yield all values in C order, in contiguous blocks."""


RESOLUTION = 1e-12
"""Relative difference of two numbers between which float64 has enough others for a histogram."""


def can_divide(low: float, high: float, parts: int) -> bool:
    """Return whether the range between two numbers can be divided into equal parts in float64."""
    smallest = parts * float(np.finfo(np.float64).tiny)
    return high - low > max(max(abs(low), abs(high)) * RESOLUTION, smallest)
