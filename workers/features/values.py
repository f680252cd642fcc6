"""Table columns as arrays, from stored arrays and from JSON values. Both give the same arrays.

Numbers, integers and booleans are float64 with NaN for a missing value; categories and texts are texts with
variable width with "" for a missing one; dates are datetime64 in UTC microseconds with NaT for a missing
one.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jobs.spec.data.boolean_words import boolean_of
from jobs.spec.data.columns import NUMERIC, ColumnType
from jobs.spec.data.dates.formats import example_of, formats_of, pattern_of, reads_iso
from jobs.spec.data.gap_words import is_gap
from jobs.spec.data.number_format import NumberFormat, numbers_among, read_number, read_whole
from workers.features.date_texts import (
    DATE,
    FIRST_DATE,
    LAST_DATE,
    NO_DATE,
    iso_moment,
    read_dates,
    without_dates,
)

Array = npt.NDArray[Any]
TEXT = np.dtypes.StringDType()
MAX_SHOWN = 80
LARGEST = float(np.finfo(np.float32).max)
"""A model takes 32-bit floats, so a larger number would be infinite."""
LARGEST_EXACT = 2.0**53
"""Up to it, each whole number has a float64 of its own."""


class BadValue(ValueError):
    """A value does not have its column's type."""


class TextRule(NamedTuple):
    """How a column's texts were read in the data, and so are read in requests.

    Attributes:
        number_format: how texts are numbers; None if a number column takes no texts.
        gap_words: words that are missing values; None for the usual ones between numbers, and no other, and
            if a boolean column takes no texts.
        date_format: how texts are dates in addition to ISO 8601, and numbers if it has digits alone.
        misfit_words: words that are missing values as well, since they were no numbers or dates in the data.
    """

    number_format: NumberFormat | None = None
    gap_words: tuple[str, ...] | None = None
    date_format: str | None = None
    misfit_words: tuple[str, ...] = ()

    @property
    def gap_numbers(self) -> tuple[float, ...]:
        """Return the numbers among the gap words, such as -999, which are missing values as numbers too."""
        return numbers_among(self.gap_words or (), self.number_format or NumberFormat())

    def value_of(self, value: object, kind: ColumnType) -> object:
        """Return the value that a JSON value is; None if it is missing.

        Raises:
            ValueError: it is a text, and no number in this format.
        """
        if isinstance(value, str):
            return self._value_of_text(value, kind)
        if not self.gap_words or isinstance(value, bool) or not isinstance(value, int | float):
            return value
        return None if value in self.gap_numbers else value

    def _value_of_text(self, text: str, kind: ColumnType) -> str | int | float | bool | None:
        if text.strip() in (self.gap_words or ()) or text.strip() in self.misfit_words:
            return None
        has_rule = self.gap_words is not None or self.number_format is not None
        if kind == "boolean" and has_rule and (not text.strip() or boolean_of(text) is not None):
            return boolean_of(text)
        if self.number_format is None or kind == "date":
            return text
        if is_gap(text, stated=self.gap_words):
            return None
        number = read_number(text, self.number_format)
        if number is not None and number in self.gap_numbers:
            return None
        if kind in ("category", "text"):
            # A category may have this writing as a word; see `Pipeline`.
            return text if kind == "category" else self.number_word(text)
        if number is None and text.strip().lstrip("+-").lower() in INFINITE:
            return None
        if number is None:
            raise ValueError
        return number

    def number_word(self, text: str) -> str:
        """Return the word that a text is in data whose words were numbers: 1.5 for 1.50."""
        if self.number_format is None or (number := read_number(text, self.number_format)) is None:
            return "" if self.number_format and text.lstrip("+-").lower() in INFINITE else text
        return word_of(_exact(text, number, self))

    def described(self, kind: ColumnType) -> str:
        """Describe the values that a column of this type takes, for messages."""
        if self.number_format is None or kind not in ("number", "integer"):
            return _TAKES[kind]
        return f"{_TAKES[kind]}, or texts such as {self.number_format.example!r}"


NO_RULE = TextRule()
INFINITE = frozenset({"inf", "infinity"})
"""Texts in lower case and without a sign that the numbers of a file may have. They are missing values."""


def from_stored(column: Array, kind: ColumnType, name: str, texts: TextRule = NO_RULE) -> Array:
    """Return a stored column as values with its type, (rows,).

    Args:
        column: as a profile stored it, (rows,).
        kind: the column type.
        name: the column's name, for messages.
        texts: how its texts are read. Other data may keep words that are missing values here.

    Raises:
        BadValue: the values have another type, for example because another data version stored them.
    """
    stored = column.dtype.kind
    if kind in NUMERIC and stored in "biuf":
        numbers = column.astype(np.float64)
        if stored != "b" and texts.gap_numbers:
            numbers = np.where(np.isin(numbers, texts.gap_numbers), np.nan, numbers)
        # A model computes with infinite values to NaN. The comparison is false for NaN too.
        in_range = np.abs(numbers) <= LARGEST
        return numbers if in_range.all() else np.where(in_range, numbers, np.nan)
    if kind == "date" and stored == "M":
        dates = without_dates(column.astype(DATE), texts.gap_words, texts.date_format)
        return np.where((dates >= FIRST_DATE) & (dates <= LAST_DATE), dates, np.datetime64("NaT", "us"))
    if kind in ("category", "text") and stored in "TU":
        words = column.astype(TEXT)
        if texts.gap_words:
            plain = np.strings.strip(words)
            for gap in texts.gap_words:
                words[plain == gap] = ""
        return words
    if kind == "category" and stored in "iuf":
        return np.asarray([word_of(texts.value_of(value, kind)) for value in column.tolist()], dtype=TEXT)
    raise BadValue(f"column {name!r} takes {_TAKES[kind]}, but these data have {column.dtype} values")


def as_words(values: Array) -> Array:
    """Return values as words, (rows,) with variable width: numbers as number categories are written.

    Args:
        values: categories or numbers, as the other functions here return them.
    """
    if values.dtype.kind == "T":
        return values
    return np.asarray([word_of(value) for value in values.tolist()], dtype=TEXT)


def words_from_stored(column: Array, kind: ColumnType, name: str, texts: TextRule = NO_RULE) -> Array:
    """Return a stored column as words, (rows,): whole numbers exactly, also those that no float64 has.

    Raises:
        BadValue: see `from_stored`.
    """
    if kind == "integer" and column.dtype.kind in "iu":
        words = as_words(column)
        if texts.gap_numbers:
            words[np.isin(column, texts.gap_numbers)] = ""
        return words
    return as_words(from_stored(column, kind, name, texts))


def words_from_json(
    values: Sequence[object], kind: ColumnType, column: str, texts: TextRule = NO_RULE
) -> Array:
    """Return JSON values as words, (rows,), as `words_from_stored` returns stored ones.

    Raises:
        BadValue: see `from_json`.
    """
    numbers = from_json(values, kind, column, texts)
    if kind != "integer" or not (np.abs(numbers) >= LARGEST_EXACT).any():
        return as_words(numbers)
    exact = [_exact(value, number, texts) for value, number in zip(values, numbers.tolist(), strict=True)]
    return np.asarray([word_of(value) for value in exact], dtype=TEXT)


def _exact(value: object, number: float, texts: TextRule) -> int | float:
    """Return the whole number that a JSON value is, which `number` is as a float64; NaN for a gap."""
    if np.isnan(number):
        return number
    if np.abs(number) < LARGEST_EXACT:
        return number
    if isinstance(value, str) and texts.number_format is not None:
        whole = read_whole(value, texts.number_format)
        return number if whole is None else whole
    return value if type(value) is int else number


def from_json(values: Sequence[object], kind: ColumnType, column: str, texts: TextRule = NO_RULE) -> Array:
    """Return JSON values as column values, (rows,).

    Args:
        values: one for each row; None for a missing one.
        kind: the column type.
        column: its name, for messages.
        texts: how its texts are read.

    Raises:
        BadValue: a value has another type; the message names column and row.
    """
    if kind == "date":
        given = [texts.value_of(value, kind) for value in values]
        return without_dates(_dates(given, column, texts.date_format), texts.gap_words, texts.date_format)
    read = _READERS[kind]
    converted = []
    for row, value in enumerate(values):
        try:
            converted.append(read(texts.value_of(value, kind)))
        except ValueError as error:
            raise _bad(column, texts.described(kind), row, value) from error
    if kind in NUMERIC:
        return np.asarray(converted, dtype=np.float64)
    try:
        return np.asarray(converted, dtype=TEXT)
    # Half of a pair of UTF-16, which JSON can write.
    except UnicodeEncodeError as error:
        raise BadValue(f"column {column!r} has a text that is not valid Unicode") from error


def _bad(column: str, takes: str, row: int, value: object) -> BadValue:
    return BadValue(f"column {column!r} takes {takes}, but row {row + 1} has {_shown(value)}")


def _dates(values: Sequence[object], column: str, date_format: str | None) -> Array:
    """Return the dates of JSON values, (rows,); see `from_json`."""
    dates = np.full(len(values), NO_DATE, DATE)
    takes = _TAKES["date"]
    if date_format is not None:
        or_iso = ', or "2021-12-24"' if reads_iso(date_format) else ""
        takes = f"dates such as {example_of(date_format)}{or_iso}"
    texts = {}
    for row, value in enumerate(values):
        text = _text_of_date(value, date_format)
        if text is None:
            raise _bad(column, takes, row, value)
        if not is_gap(text):
            texts[row] = text
    if not texts:
        return dates
    if date_format is None:
        moments = np.asarray([iso_moment(text) for text in texts.values()], DATE)
    else:
        moments = read_dates([*texts.values()], date_format)
    if (gaps := np.isnat(moments)).any():
        row = [*texts][int(gaps.argmax())]
        raise _bad(column, takes, row, values[row])
    dates[[*texts]] = moments
    return dates


def _text_of_date(value: object, date_format: str | None) -> str | None:
    """Return a JSON value as the text of a date, empty for a missing one; None if it is neither."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if date_format is None or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # As in a file, 20211224 may be a number.
    digits = [pattern for form in formats_of(date_format) if (pattern := pattern_of(form)).is_digits]
    if not digits:
        return None
    if isinstance(value, float) and not value.is_integer():
        return str(value) if any(pattern.is_unix for pattern in digits) else None
    return f"{int(value):0{digits[0].width}}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _number(value: object) -> float:
    if value is None:
        return np.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    try:
        number = float(value)
    # Of a whole number beyond the range of a float.
    except OverflowError as error:
        raise ValueError from error
    return number if abs(number) <= LARGEST else np.nan


def _integer(value: object) -> float:
    number = _number(value)
    if np.isfinite(number) and number != int(number):
        raise ValueError
    return number


def _boolean(value: object) -> float:
    if value is None:
        return np.nan
    if not isinstance(value, bool) and value not in (0, 1):
        raise ValueError
    return float(value)


def word_of(value: object) -> str:
    """Return a category: numbers without a decimal point if they are whole, as in a file."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    if isinstance(value, float):
        if not np.isfinite(value):
            return ""
        return str(int(value)) if value.is_integer() else str(value)
    return str(value)


def _text(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError
    return value


_READERS: dict[ColumnType, Callable[[object], Any]] = {
    "number": _number,
    "integer": _integer,
    "boolean": _boolean,
    "category": word_of,
    "text": _text,
}
_TAKES: dict[ColumnType, str] = {
    "number": "numbers",
    "integer": "whole numbers",
    "boolean": "true or false",
    "category": "words",
    "text": "texts",
    "date": 'dates such as "2026-11-01" or "2026-11-01T09:30:00Z"',
}
