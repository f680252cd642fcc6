"""Records the rows of a text table that cannot be read."""

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from workers.engine.data.reading.text_files.foreign_quotes import name_single_quotes
from workers.engine.errors import BadData
from workers.engine.formulas import quoted

SHOWN_CHARACTERS = 80
REMEDY = "correct the file, or read it with a larger share in Damaged rows (max_bad_share)"
ALL_ROWS = "correct the file: no row of it can be read"
FLATTEN = "pandas.json_normalize"
"""Makes columns of the values inside of nested objects."""


@dataclass
class BadRows:
    """Rows that have more or fewer fields than the header.

    Attributes:
        allowed: the share that may be left out.
        rows: line number, reason and text for each.
    """

    NAMES: ClassVar[tuple[str, ...]] = ("line", "reason", "text")
    """Names of the columns in the file of the rows."""

    allowed: float = 0.0
    rows: list[tuple[int, str, str]] = field(default_factory=list)

    def handle(self, row: Any) -> str:
        """Record a row that pyarrow cannot read; it is left out, or ends the reading."""
        number = row.number if row.number is not None else 0
        reason = f"{row.actual_columns} fields instead of {row.expected_columns}"
        self.rows.append((number, reason, row.text))
        return "skip" if self.allowed else "error"

    def check(self, rows: int, name: str) -> None:
        """Check the share of rows that were left out.

        Args:
            rows: how many rows were read.
            name: the file's name.

        Raises:
            BadData: it is larger than allowed.
        """
        count = len(self.rows)
        if count > self.allowed * (rows + count):
            number, reason, text = self.rows[0]
            if FLATTEN in reason and not rows:
                # It is the form of the rows, not damage.
                raise BadData(f"{name} is no table: line {number} has {reason}: {_shown(text)}")
            remedy = REMEDY if rows or not self.allowed else ALL_ROWS
            raise BadData(
                f"{count:,} of {rows + count:,} rows of {name} cannot be read; at most a share of "
                f"{self.allowed:g} is left out. The first is line {number}: {reason}: {_shown(text)}"
                f"{name_single_quotes(text)}; {remedy}"
            )

    def refusal(self, name: str) -> BadData:
        """Return the error for the last row, which ended the reading of a file."""
        number, reason, text = self.rows[-1]
        remedy = f"{name_single_quotes(text)}; {REMEDY}"
        return BadData(f"line {number} of {name} has {reason}: {_shown(text)}{remedy}")

    def write(self, path: Path) -> None:
        """Write the rows to a CSV file. Texts that a spreadsheet would evaluate as a formula are quoted."""
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.NAMES)
            writer.writerows((number, reason, quoted(text)) for number, reason, text in self.rows)


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…")
