"""Keeps a column of a large file while its rows are read, though its kind may change."""

from collections.abc import Iterator

import numpy as np

from workers.engine.arrays import Array
from workers.engine.data.reading.csv_columns.facts import ColumnFacts, Kind, Part
from workers.engine.data.spilled import NumberWriter, SpilledColumns, TextWriter, Writer

INTEGER, NUMBER = np.dtype(np.int64), np.dtype(np.float64)
COPIED_ROWS = 1 << 20


class GrowingColumn:
    """A column with a file for each kind of its values: first missing ones, then whole numbers, then others.

    If values cannot be kept, as when a text follows numbers, it is lost, and has to be read again.

    Args:
        columns: get it in the end.
        name: its name.
    """

    def __init__(self, columns: SpilledColumns, name: str) -> None:
        self._columns, self._name = columns, name
        self._kinds: list[Kind] = []
        self._rows: list[int] = []
        self._writers: list[Writer] = []
        self.is_lost = False

    def append(self, part: Part) -> None:
        """Add rows."""
        if self.is_lost:
            return
        kind = self._kind_for(part)
        if kind is None or part.values is None:
            self.abort()
            self.is_lost = True
            return
        if not self._kinds or self._kinds[-1] != kind:
            self._begin(kind)
        writer = self._writers[-1]
        if isinstance(writer, TextWriter):
            writer.append(part.values)
        elif part.kind == "empty":
            writer.append(np.full(part.rows, np.nan))
        else:
            writer.append(part.values)
        self._rows[-1] += part.rows

    def _kind_for(self, part: Part) -> Kind | None:
        """Return the kind of the file that takes some rows; None if none does."""
        last = self._kinds[-1] if self._kinds else "empty"
        if last == "text":
            return "text" if part.kind in ("text", "empty") else None
        if part.kind == "text":
            return "text" if last == "empty" else None
        if last == "empty":
            return part.kind
        if last == "number" and part.has_negative_zero:
            return None
        # A gap is no whole number.
        return "integer" if last == part.kind == "integer" else "number"

    def _begin(self, kind: Kind) -> None:
        if kind == "text" and self._kinds == ["empty"]:
            # Words for missing numbers are texts among texts.
            self._kinds = ["text"]
            return
        if self._writers:
            self._writers[-1].close()
        dtype = {"integer": INTEGER, "number": NUMBER}.get(kind)
        self._writers.append(
            TextWriter(self._columns) if dtype is None else NumberWriter(self._columns, dtype)
        )
        self._kinds.append(kind)
        self._rows.append(0)

    def is_of(self, facts: ColumnFacts) -> bool:
        """Return whether the values can be those of the kind that the column has by all rows."""
        if self.is_lost:
            return False
        if facts.kind in ("empty", "text"):
            return {*self._kinds} <= {"empty", "text"}
        return facts.kind == "integer" or not (facts.has_negative_zero and "integer" in self._kinds)

    def finish(self, kind: Kind) -> None:
        """Close the files, and add the column with its kind."""
        if not self._kinds:
            self._begin(kind)
        if len(self._kinds) == 1:
            self._writers[0].finish(self._name)
            return
        whole = NumberWriter(self._columns, NUMBER)
        for values in self._as_numbers():
            whole.append(values)
        whole.finish(self._name)

    def _as_numbers(self) -> Iterator[Array]:
        """Yield the values of all files as float64, and remove these."""
        for kind, rows, writer in zip(self._kinds, self._rows, self._writers, strict=True):
            # Its texts are all words for missing numbers.
            values = np.broadcast_to(np.nan, rows)
            if not isinstance(writer, TextWriter):
                values = np.memmap(writer.close(), INTEGER if kind == "integer" else NUMBER, mode="r")
            for start in range(0, rows, COPIED_ROWS):
                yield values[start : start + COPIED_ROWS]
            writer.abort()

    def abort(self) -> None:
        """Close and remove the files."""
        for writer in self._writers:
            writer.abort()
        self._writers.clear()
