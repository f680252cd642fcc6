"""Collects what decides a column's kind, over all rows that were read so far."""

from dataclasses import dataclass, field
from typing import Any, Literal

from workers.engine.data.reading.exact_numbers import COMPARED, EqualDecimals, equal_decimals_in

Kind = Literal["empty", "integer", "number", "text"]


@dataclass
class Part:
    """A column's values in some rows, and their properties.

    Attributes:
        kind: int64 for `integer`, float64 with NaN for gaps for `number`, else texts, an Arrow array of type
            large_string without nulls. It is `empty` if each is empty or a word for a missing number.
        values: the values; None if they are of no use, since the column is read again.
        rows: their number.
        has_gaps: whether a number is missing.
        is_whole: whether all numbers are written without a mark or an exponent.
        fits: whether all are whole and have at most 64 bits.
        is_inexact: whether a whole number is no float64.
        has_negative_zero: whether a whole number is -0, which int64 does not have.
        has_decimal_commas: whether all numbers may be written with decimal commas.
        is_plain: whether all are also numbers with decimal points, without points between thousands.
        has_mark: whether a number has a point or a comma.
        may_be_groups: whether three digits are behind each mark.
        has_hundreds: whether a whole number from 100 up has no mark.
        words: the words for missing numbers, with the number of their rows.
        long: the texts of numbers that may have more digits than a float64, an Arrow array.
    """

    kind: Kind
    values: Any
    rows: int
    has_gaps: bool = False
    is_whole: bool = False
    fits: bool = False
    is_inexact: bool = False
    has_negative_zero: bool = False
    has_decimal_commas: bool = True
    is_plain: bool = True
    has_mark: bool = False
    may_be_groups: bool = False
    has_hundreds: bool = False
    words: dict[str, int] = field(default_factory=dict)
    long: Any = None


@dataclass
class ColumnFacts:
    """The properties of a column by all rows so far.

    Attributes:
        decimal_comma: whether the file's numbers have decimal commas.
        has_text: whether a value is no number, or a person has stated a rule for its texts.
        has_number: whether a value is one.
        words: the words for missing numbers, with the number of their rows.
    """

    decimal_comma: bool = False
    has_text: bool = False
    has_number: bool = False
    has_gaps: bool = False
    is_whole: bool = True
    fits: bool = True
    is_inexact: bool = False
    has_negative_zero: bool = False
    has_decimal_commas: bool = True
    is_plain: bool = True
    has_mark: bool = False
    may_be_groups: bool = True
    has_hundreds: bool = False
    words: dict[str, int] = field(default_factory=dict)
    _long: list[Any] = field(default_factory=list)

    def add(self, part: Part) -> None:
        """Add the properties of the next rows."""
        for word, rows in part.words.items():
            self.words[word] = self.words.get(word, 0) + rows
        self.has_gaps |= part.has_gaps
        self.has_text |= part.kind == "text"
        if part.kind not in ("integer", "number"):
            return
        self.has_number = True
        self.is_whole &= part.is_whole
        self.fits &= part.fits
        self.is_inexact |= part.is_inexact
        self.has_negative_zero |= part.has_negative_zero
        self.has_decimal_commas &= part.has_decimal_commas
        self.is_plain &= part.is_plain
        self.has_mark |= part.has_mark
        self.may_be_groups &= part.may_be_groups
        self.has_hundreds |= part.has_hundreds
        if part.long is not None and self.takes_long:
            self._long.append(part.long)

    @property
    def takes_long(self) -> bool:
        """Whether further long decimals would be compared."""
        return sum(map(len, self._long)) < COMPARED

    @property
    def is_text(self) -> bool:
        """Whether the column has texts, whichever rows follow."""
        return self.has_text or (self.decimal_comma and not (self.has_decimal_commas or self.is_plain))

    @property
    def kind(self) -> Kind:
        """The column's kind, if no rows follow."""
        if self.is_text or (self.has_one_group and (self.decimal_comma or self.has_hundreds)):
            # The whole column decides the meaning of a mark: beside 658, that of 3.421 divides thousands.
            return "text"
        if not self.has_number:
            return "empty"
        if not self.is_whole:
            return "number"
        if self.fits and not self.has_gaps:
            return "integer"
        return "text" if self.is_inexact else "number"

    @property
    def has_one_group(self) -> bool:
        """Whether all marks have three digits behind them, as in 1.234, and there are some."""
        return self.has_mark and self.may_be_groups

    def equal_decimals(self) -> EqualDecimals | None:
        """Return two different decimals that are the same float64."""
        import pyarrow as pa

        return equal_decimals_in(pa.chunked_array(self._long)) if self._long else None
