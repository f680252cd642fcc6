"""Encodes rows of numbers at once, for pipelines whose columns are all numbers.

This takes a tenth of the time that reading each value takes, and gives the same bits.
"""

from typing import Self

import numpy as np

from jobs.spec.data.features import Features, NumberFeature, positions_of
from workers.features.values import LARGEST, Array, TextRule


class NumericRows:
    """The columns of a pipeline, as arrays.

    Args:
        columns: the fitted columns in order.
    """

    def __init__(self, columns: tuple[NumberFeature, ...]) -> None:
        widths = [positions_of(column) for column in columns]
        starts = np.cumsum([0, *widths])
        self._width = int(starts[-1])
        self._numbers = starts[:-1]
        self._fills = np.array([column.fill for column in columns], np.float64)
        self._marked = np.flatnonzero([column.indicator for column in columns])
        self._whole = np.flatnonzero([column.type == "integer" for column in columns])
        self._boolean = np.flatnonzero([column.type == "boolean" for column in columns])
        rules = [TextRule(column.number_format, column.gap_words) for column in columns]
        self._gaps = {place: gaps for place, rule in enumerate(rules) if (gaps := rule.gap_numbers)}

    @classmethod
    def of(cls, features: Features) -> Self | None:
        """Return the columns of a pipeline; None if some are no numbers."""
        columns = tuple(column for column in features.columns if isinstance(column, NumberFeature))
        return cls(columns) if len(columns) == len(features.columns) else None

    def encode(self, rows: Array) -> Array | None:
        """Return the input for rows without gaps, (rows, width) float32.

        Args:
            rows: (rows, columns) float64.

        Returns:
            The input; None if a number does not have its column's type.
        """
        whole, boolean = rows[:, self._whole], rows[:, self._boolean]
        if (whole != np.floor(whole)).any() or ((boolean != 0) & (boolean != 1)).any():
            return None
        fits = np.abs(rows) <= LARGEST
        for place, gaps in self._gaps.items():
            fits[:, place] &= ~np.isin(rows[:, place], gaps)
        out = np.zeros((len(rows), self._width), np.float32)
        out[:, self._numbers] = np.where(fits, rows, self._fills)
        out[:, self._numbers[self._marked] + 1] = ~fits[:, self._marked]
        return out
