"""Repeats the value of cells of a workbook that are merged over several rows: it belongs to each of them.

The first of such cells alone has the value in the file. A title that is merged over columns is no value of
each.
"""

import re

TAG = re.compile(rb"<[^\s<>/!?]*mergeCell\s[^<>]*?ref=[\"']([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})")
MAX_AREAS = 100_000
"""Merged areas of a sheet whose value is repeated."""


class MergedCells:
    """The cells of a sheet that are merged over rows.

    Attributes:
        rows: how many rows got a value of a row above.
        example: one of them, for a message.
    """

    def __init__(self) -> None:
        self.rows, self.example = 0, ""
        self._last_rows: dict[tuple[int, int], int] = {}
        self._open: dict[int, tuple[int, str]] = {}

    def __bool__(self) -> bool:
        """Return whether there are such cells."""
        return bool(self._last_rows)

    def find(self, text: bytes) -> None:
        """Keep the areas that a part of a sheet's XML describes."""
        for first, row, last, last_row in TAG.findall(text) if len(self._last_rows) < MAX_AREAS else ():
            if first == last:
                self._last_rows[int(row), _number_of(first)] = int(last_row)

    def repeat(self, row: int, texts: list[str]) -> None:
        """Write the values of areas that began in rows above into a row that has other values.

        Args:
            row: its number, from 1.
            texts: its cells, which are changed.
        """
        if not self._last_rows or not any(texts):
            return
        for column, text in enumerate(texts):
            if text and (last := self._last_rows.get((row, column))) is not None:
                self._open[column] = last, text
        for column, (last, text) in [*self._open.items()]:
            if row > last:
                del self._open[column]
                continue
            texts.extend([""] * (column + 1 - len(texts)))
            if not texts[column]:
                texts[column] = text
                self.rows += 1
                self.example = self.example or f"{text!r} in row {row}"

    def findings(self) -> list[str]:
        """Return a sentence on the rows that got a value."""
        if not self.rows:
            return []
        many = "One row" if self.rows == 1 else f"{self.rows:,} rows"
        return [f"{many} got the value of a cell that is merged over several rows, as {self.example}."]


def _number_of(letters: bytes) -> int:
    """Return a column's number from 0, which a workbook counts by letters."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number - 1
