"""Stores texts with variable width: one long text must not enlarge all other rows."""

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

import numpy as np

from workers.engine.arrays import Array
from workers.engine.errors import BadData

TEXT = np.dtypes.StringDType()
"""NumPy's texts of variable width. A text takes 16 bytes, and its characters if there are more than 15."""
BYTES_PER_TEXT = 16
UTF8, ENDS = ".utf8", ".ends"
"""Suffixes of the two arrays that store a column of texts: NumPy's files have no texts of variable width."""


def is_text(column: Array) -> bool:
    """Return whether an array contains texts, with variable or fixed width."""
    return column.dtype.kind in "TU"


def text_array(texts: Iterable[str]) -> Array:
    """Return texts as an array, (rows,)."""
    return np.asarray(list(texts), dtype=TEXT)


def trimmed(column: Array) -> Array:
    """Return texts, (rows, …), without blanks around them, as requests are read too."""
    return np.asarray(np.strings.strip(column))


def check_lengths(name: str, column: Array, limit: int, first: int = 0) -> None:
    """Check that no text in a column is too long.

    Args:
        name: the column's name.
        column: texts with variable width, (rows, …).
        limit: characters.
        first: how many rows precede `column`.

    Raises:
        BadData: a text is longer; the message names its row.
    """
    lengths = np.strings.str_len(column)
    if lengths.size and int(lengths.max()) > limit:
        place = int((lengths > limit).argmax())
        row = first + int(np.unravel_index(place, lengths.shape)[0])
        length = int(lengths.flat[place])
        raise BadData(
            f"column {name!r} has a text of {length:,} characters in row {row + 1}; at most {limit:,} are "
            "read"
        )


def to_stored(name: str, column: Array) -> Iterator[tuple[str, Array]]:
    """Yield the names and arrays that store a column: two for texts with variable width, else the column."""
    if column.dtype.kind != "T" or column.ndim != 1:
        yield name, column
        return
    encoded = [cast("str", text).encode() for text in column]
    yield name + UTF8, np.frombuffer(b"".join(encoded), np.uint8)
    yield name + ENDS, np.cumsum([len(text) for text in encoded], dtype=np.int64)


def from_stored(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the columns whose stored arrays are given: the inverse to `to_stored`.

    Raises:
        ValueError: the arrays do not describe texts.
    """
    columns: dict[str, Array] = {}
    for name, array in arrays.items():
        if name.endswith(UTF8):
            column = name.removesuffix(UTF8)
            columns[column] = _decoded(array, arrays[column + ENDS])
        elif not name.endswith(ENDS):
            columns[name] = array
    return columns


def _decoded(utf8: Array, ends: Array) -> Array:
    body = utf8.tobytes()
    starts = [0, *ends[:-1].tolist()] if len(ends) else []
    return text_array(body[start:end].decode() for start, end in zip(starts, ends.tolist(), strict=True))
