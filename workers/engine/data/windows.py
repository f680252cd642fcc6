"""Finds the rows in each window over a table.

A window belongs to the row that it predicts: it ends `horizon` rows before it, ordered by time and among
the rows in its group. So parts, folds and slices are the same as for single rows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobs.spec.sections.data import Window
from jobs.spec.signature import InputWindow
from workers.engine.arrays import Array
from workers.engine.data.encode import missing
from workers.engine.data.split import Parts
from workers.engine.errors import BadData, BadSpec

PART_CELLS = 1 << 20
"""About as many row numbers of windows are made at once. Those of all windows need several times the memory
of the encoded rows."""


@dataclass(frozen=True)
class Windows:
    """The windows over a table.

    Attributes:
        window: their description, which is part of the pipeline.
        order: all row numbers by group and time, oldest first, (all rows,).
        place: each row's place in `order`, (all rows,).
        exists: whether there is a window that predicts a row, (all rows,).
    """

    window: InputWindow
    order: Array
    place: Array
    exists: Array

    def of(self, rows: Array) -> Array:
        """Return the rows in the windows that predict some rows, oldest first, (rows, window rows).

        Args:
            rows: their numbers. The result is 0 for those that no window predicts.
        """
        exists = self.exists[rows][..., None]
        following = np.arange(self.window.rows, dtype=self.place.dtype)
        places = np.where(exists, self.oldest(rows)[..., None] + following, 0)
        return np.where(exists, self.order[places], 0)

    def oldest(self, rows: Array) -> Array:
        """Return the oldest row's place in each window that predicts some rows, (rows,)."""
        return self.place[rows] - (self.window.horizon + self.window.rows - 1)

    def in_parts(self, rows: Array) -> Iterator[tuple[slice, Array]]:
        """Yield the windows for some rows in bounded parts, each with its positions in `rows`."""
        at_once = max(PART_CELLS // self.window.rows, 1)
        for start in range(0, len(rows), at_once):
            part = slice(start, start + at_once)
            yield part, self.of(rows[part])


def windows_over(columns: Mapping[str, Array], window: InputWindow) -> Windows:
    """Return the windows over all table rows. Rows with the same time keep the file's order.

    Args:
        columns: by name, (rows,) each.
        window: the window size, and the columns that order and divide the rows.

    Raises:
        BadData: a column does not exist, or has no value in some row.
    """
    time = _column(columns, window.time)
    order = np.argsort(time, kind="stable")
    starts = np.zeros(len(time), np.int64)
    if window.group is not None:
        _, member = np.unique(_column(columns, window.group), return_inverse=True)
        order = order[np.argsort(member[order], kind="stable")]
        sorted_groups = member[order]
        starts = np.searchsorted(sorted_groups, sorted_groups, side="left")
    numbers = np.arange(len(time), dtype=number_type(len(time)))
    place = np.empty_like(numbers)
    place[order] = numbers
    exists = np.empty(len(time), bool)
    # The oldest row of each window must be in the group of its target.
    exists[order] = numbers - (window.horizon + window.rows - 1) >= starts
    return Windows(window, order.astype(numbers.dtype), place, exists)


def number_type(rows: int) -> type[np.signedinteger[Any]]:
    """Return the smallest type that can number so many rows."""
    return np.int32 if rows <= np.iinfo(np.int32).max else np.int64


def _column(columns: Mapping[str, Array], name: str) -> Array:
    if name not in columns:
        raise BadData(f"the windows of the model need the column {name!r}, which these data do not have")
    # A column of a mapped file is read each time.
    column = columns[name]
    if (gaps := np.flatnonzero(missing(column))).size:
        raise BadData(f"the windows' column {name!r} has no value in row {gaps[0] + 1}")
    return column


def windows_of(encoded: Array, windows: Windows, rows: Array, position: Array | None = None) -> Array:
    """Return the windows that predict some rows, (rows, window rows, width).

    Args:
        encoded: table rows, (encoded rows, width).
        windows: the table's windows.
        rows: the predicted rows' numbers.
        position: each table row's position among the encoded rows; None if all are encoded.
    """
    out = np.empty((len(rows), windows.window.rows, *encoded.shape[1:]), encoded.dtype)
    for part, inside in windows.in_parts(rows):
        numbers = inside if position is None else position[inside]
        # Without `clip`, the rows are written to a copy first. All numbers are valid.
        np.take(encoded, numbers, axis=0, out=out[part], mode="clip")
    return out


def described(window: Window) -> InputWindow:
    """Return a window's description once its columns are known.

    Raises:
        BadSpec: no column orders the rows.
    """
    if window.time is None:
        raise BadSpec("windows need the order of their rows: name a column in data.window.time")
    return InputWindow(rows=window.rows, horizon=window.horizon, time=window.time, group=window.group)


def with_windows(parts: Parts, windows: Windows) -> Parts:
    """Return each part's rows that a window predicts.

    The window's rows may be in the same part as the predicted row or in an earlier one (training, validation,
    test), as the past is known when a model is used, but in no later one.

    Raises:
        BadSpec: a part would be empty.
    """
    # Rows in no part, which a split by a column may have, come last.
    part_of_row = np.full(len(windows.exists), len(parts), np.int8)
    for number, rows in enumerate(parts):
        part_of_row[rows] = number
    targets = np.flatnonzero(windows.exists)
    latest = _latest_from(part_of_row[windows.order], windows.window.rows)
    usable = windows.exists.copy()
    usable[targets] = latest[windows.oldest(targets)] <= part_of_row[targets]
    usable_parts = Parts(*(rows[usable[rows]] for rows in parts))
    for name, rows in usable_parts._asdict().items():
        if not len(rows):
            window = windows.window
            among = "" if window.group is None else f" of a value of {window.group!r}"
            raise BadSpec(
                f"the {name} part has no window of {window.rows} rows{among} that ends {window.horizon} rows "
                "before the predicted row; choose a window of fewer rows, or a smaller horizon"
            )
    return usable_parts


def _latest_from(parts: Array, rows: int) -> Array:
    """Return the latest of each `rows` parts that follow each other, (windows,).

    Args:
        parts: in row order, (all rows,).
        rows: a window's length.
    """
    windows = max(len(parts) - rows + 1, 0)
    latest = parts[:windows].copy()
    for number in range(1, rows if windows else 1):
        np.maximum(latest, parts[number : number + windows], out=latest)
    return latest
