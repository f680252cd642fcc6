"""Reads targets with several labels in a row: JSON lists, or texts such as "a;b;c"."""

import ast
import json

import numpy as np

from workers.engine.arrays import Array
from workers.engine.data.texts import is_text
from workers.engine.errors import BadData

SEPARATORS = (";", "|", ",")
"""In this order among those that equally many rows contain."""
MAX_LABELS = 1_000
MAX_LABEL = 500
MAX_WRITTEN = 10_000
"""Characters of a list that Python's reader of literals is given."""
MOST = 0.3
"""Share of the rows with a separator from which a target may have several labels."""


def is_list_column(column: Array) -> bool:
    """Return whether each column value is a JSON list with words, numbers or booleans."""
    return _lists(column) is not None


def lists_of(column: Array) -> list[list[str]]:
    """Return the labels of each row of a column for which `is_list_column` holds."""
    return _lists(column) or []


def several_labels(name: str, column: Array) -> tuple[Array, tuple[str, ...]]:
    """Return each row's labels, (rows, labels) float32 with 0 and 1, and their names, sorted.

    Args:
        name: the column's name.
        column: JSON lists, or texts with a separator, (rows,). An empty list has no label.

    Raises:
        BadData: there are fewer than two labels, or too many, or one is too long.
    """
    rows = _lists(column)
    if rows is None:
        texts = column.tolist()
        rows = _bracketed(texts) or _divided(texts)
    labels = sorted({label for row in rows for label in row})
    if len(labels) < 2:
        raise BadData(
            f"target {name!r} has {len(labels)} label(s) in all rows; several labels need at least two"
        )
    if len(labels) > MAX_LABELS:
        raise BadData(
            f"target {name!r} has {len(labels):,} different labels; at most {MAX_LABELS:,} are predicted"
        )
    if longest := next((label for label in labels if len(label) > MAX_LABEL), None):
        raise BadData(
            f"target {name!r} has a label of {len(longest):,} characters; at most {MAX_LABEL} are accepted"
        )
    place = {label: number for number, label in enumerate(labels)}
    y = np.zeros((len(rows), len(labels)), np.float32)
    for number, row in enumerate(rows):
        y[number, [place[label] for label in row]] = 1
    return y, tuple(labels)


def separator_of(texts: list[str]) -> str | None:
    """Return the separator that most texts contain; None if none has any."""
    counts = {mark: sum(mark in text for text in texts) for mark in SEPARATORS}
    best = max(SEPARATORS, key=lambda mark: counts[mark])
    return best if counts[best] else None


def seems_divided(column: Array) -> bool:
    """Return whether column values look like several labels in a text, such as "a;b".

    A comma is too common in names to count.
    """
    if column.ndim != 1 or not is_text(column):
        return False
    texts = column.tolist()
    divided = sum(map(_is_divided, texts))
    return divided > MOST * len(texts)


def _is_divided(text: str) -> bool:
    return any(mark in text for mark in SEPARATORS[:2]) or (_is_bracketed(text) and "," in text)


def _divided(texts: list[str]) -> list[list[str]]:
    mark = separator_of(texts)
    parts = [text.split(mark) if mark is not None else [text] for text in texts]
    return [[label for part in row if (label := part.strip())] for row in parts]


def _bracketed(texts: list[str]) -> list[list[str]] | None:
    """Return the labels of lists as people write them, ['a', 'b'] or [a, b]; None without brackets."""
    if not all(_is_bracketed(text) for text in texts if text):
        return None
    rows = []
    for text in texts:
        try:
            values = ast.literal_eval(text.strip()) if len(text) <= MAX_WRITTEN else None
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            values = None
        if not isinstance(values, list) or not all(isinstance(value, str | int | float) for value in values):
            values = [part.strip().strip("'\"") for part in text.strip()[1:-1].split(",")]
        rows.append([label for value in values if (label := _label(value))])
    return rows


def _lists(column: Array) -> list[list[str]] | None:
    if column.ndim != 1 or not is_text(column):
        return None
    # Nearly every column fails at its first values, so the whole of it is seldom read.
    if not all(_is_bracketed(text) for part in (column[:100], column) for text in part.tolist() if text):
        return None
    if not (column != "").any():
        return None
    rows = []
    for text in column.tolist():
        if (row := _list(text)) is None:
            return None
        rows.append(row)
    return rows


def _is_bracketed(text: str) -> bool:
    text = text.strip()
    return text.startswith("[") and text.endswith("]")


def _list(text: str) -> list[str] | None:
    if not text:
        return []
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, list) or any(not isinstance(value, str | int | float) for value in values):
        return None
    return [label for value in values if (label := _label(value))]


def _label(value: str | float) -> str:
    """Return a label as text: true and false as JSON writes them."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).strip()
