"""Texts with few different values: each value once, and its number in every row.

What follows from the values alone is computed once for each value instead of once for each row.
"""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from workers.engine.arrays import Array
from workers.engine.data.texts import text_array

MAX_WORDS = 10_000
"""Columns with more different texts are handled row by row."""
PART_ROWS = 262_144


class Words(NamedTuple):
    """A text column.

    Attributes:
        values: the different texts, ordered by their first rows.
        codes: each row's position in `values`, (rows,) int32.
    """

    values: Array
    codes: Array

    def rows(self, chosen: Any = slice(None)) -> Array:
        """Return the texts in some rows."""
        return np.asarray(self.values[self.codes[chosen]])

    def counts(self) -> Counter[str]:
        """Return how many rows have each value, in the same order as `values`."""
        numbers = np.bincount(self.codes, minlength=len(self.values))
        return Counter(dict(zip(self.values.tolist(), numbers.tolist(), strict=True)))


def words_of(texts: Any) -> Words | None:
    """Return an Arrow text array without nulls as words; None if there are too many different ones."""
    places: dict[str, int] = {}
    codes = np.empty(len(texts), np.int32)
    for start in range(0, len(texts), PART_ROWS):
        part = texts.slice(start, PART_ROWS).dictionary_encode()
        # Before they become Python objects.
        if len(part.dictionary) > MAX_WORDS:
            return None
        numbers = [places.setdefault(text, len(places)) for text in part.dictionary.to_pylist()]
        if len(places) > MAX_WORDS:
            return None
        codes[start : start + len(part)] = np.asarray(numbers, np.int32)[part.indices.to_numpy()]
    return Words(text_array(places), codes)
