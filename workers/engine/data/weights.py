"""Reads the column with the role weight, whose numbers weigh the rows in losses and metrics."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from jobs.spec.data.columns import WEIGHTS, ColumnType
from workers.engine.arrays import Array, Floats
from workers.engine.errors import BadData, BadSpec


@dataclass(frozen=True)
class RowWeights:
    """The weights for some rows.

    Attributes:
        column: its name.
        values: (rows,), from 0 to 1.
    """

    column: str
    values: Floats

    @classmethod
    def of_column(cls, name: str, column: Array) -> Self:
        """Return the weights for all rows; see `check_weights`.

        Only their ratios count, so they are divided by the largest one: their sums are then finite.
        """
        values = column.astype(np.float64)
        return cls(name, values / values.max())

    def select(self, rows: Array) -> "RowWeights":
        """Return the weights for some rows.

        Raises:
            BadSpec: there are rows, and all of them have weight 0.
        """
        chosen = self.values[rows]
        if len(chosen) and not chosen.any():
            raise BadSpec(
                f"all {len(chosen):,} rows of a part have weight 0 in column {self.column!r}, so no loss and "
                "no metric is defined there; split the rows in another way"
            )
        return RowWeights(self.column, chosen)


def check_weights(name: str, column: Array, kind: ColumnType, used: Array) -> None:
    """Check the values that a column with the role weight has in the rows that are used.

    Args:
        name: the column's name.
        column: its values, (rows,).
        kind: its type.
        used: whether each row is used, (rows,).

    Raises:
        BadData: one is missing, negative or infinite, or all are 0; the message names the first row.
    """
    if kind not in WEIGHTS or column.dtype.kind not in "iuf":
        raise BadData(f"column {name!r} has the role weight, which is for numbers, but its type is {kind}")
    wrong = used & (~np.isfinite(column) | (column < 0))
    if wrong.any():
        row = int(wrong.argmax())
        problem = "no value" if np.isnan(column[row]) else f"the value {column[row]!s}"
        raise BadData(
            f"column {name!r} has the role weight, and {problem} in row {row + 1}; a weight is a finite "
            "number, 0 or larger, in each row"
        )
    if not column[used].any():
        with_target = "" if used.all() else " that have a target"
        raise BadData(f"column {name!r} has the role weight, and is 0 in all rows{with_target}")


def relative(weights: RowWeights | None, rows: int) -> Floats | None:
    """Return weights with the mean 1, (rows,), as a training uses them; None if rows count once."""
    if weights is None or not rows:
        return None
    return weights.values / weights.values.mean()
