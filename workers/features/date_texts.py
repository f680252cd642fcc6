"""Makes moments of the parts of dates, and reads the texts of a request by a column's date format.

The texts of a file are read by `workers.engine.data.dates.values`, with the same regular expressions
and the same computation as here.
"""

import datetime
import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jobs.spec.data.dates.formats import (
    EVERY_YEAR,
    FIRST_YEAR,
    DatePattern,
    formats_of,
    pattern_of,
    reads_iso,
)
from jobs.spec.data.dates.names import ZONES, month_number
from jobs.spec.data.dates.unix_times import FIELD, UNITS
from jobs.spec.data.plain_characters import plain_characters

Array = npt.NDArray[Any]
DATE = np.dtype("datetime64[us]")
NO_DATE = np.datetime64("NaT", "us")
FIRST_DATE, LAST_DATE = np.datetime64("0001-01-01", "us"), np.datetime64("9999-12-31T23:59:59.999999", "us")
"""The dates that a request and a fitted pipeline can have."""
MAX_CHARACTERS = 200
DIGIT_YEARS = (1900, 2100)
"""Plausible years in a form that other numbers have too."""
_HALVES = {"": 0, "a": 1, "p": 2}
_MONTHS = 12
_THURSDAY = 3
"""The weekday of the first day of 1970, with Monday as 0."""


def offset_seconds(zone: str) -> int:
    """Return a zone's offset from UTC: of `+01:00`, `GMT-5`, `Z`, `EST`. An empty text is UTC."""
    # Expressions without case accept a long s and the sign of Kelvin too.
    name = zone.casefold().upper()
    if (hours := ZONES.get(name)) is not None:
        return 3600 * hours
    offset = name.removeprefix("UTC").removeprefix("GMT").removeprefix("UT")
    if not offset:
        return 0
    digits = offset[1:].replace(":", "")
    digits = digits if len(digits) % 2 == 0 else f"0{digits}"
    seconds = sum(
        int(digits[start : start + 2]) * unit
        for start, unit in zip(range(0, len(digits), 2), (3600, 60, 1), strict=False)
    )
    return -seconds if offset[0] == "-" else seconds


def half_number(letter: str) -> int:
    """Return 1 for AM, 2 for PM, and 0 for neither."""
    return _HALVES[letter.lower()]


def negative_number(sign: str) -> int:
    """Return 1 for a minus, and 0 for no sign."""
    return int(sign == "-")


WORDS = {
    "month_name": month_number,
    "zone": offset_seconds,
    "half": half_number,
    "negative": negative_number,
}
"""The functions that make numbers of these fields. The other fields are digits."""


def fraction_text(digits: str) -> str:
    """Return the digits of a second's fraction as microseconds; further digits are dropped."""
    return digits[:6].ljust(6, "0")


def moments_of(
    parts: Mapping[str, Array], rows: int, first_year: int = FIRST_YEAR, years: tuple[int, int] = EVERY_YEAR
) -> Array:
    """Return the moments for the parts of dates, (rows,) datetime64 in UTC, NaT for an impossible date.

    Args:
        parts: by the names of a pattern's fields, (rows,) int64 each; see `WORDS`.
        rows: how many there are.
        first_year: the first one that two digits can mean.
        years: the first and the last one that four digits can mean.
    """
    if "negative" in parts:
        return _unix_moments(parts)
    if (short := parts.get("short_year")) is not None:
        parts = {**parts, "year": first_year + (short - first_year) % 100}
    days, is_possible = _days(parts, rows)
    seconds, is_time = _seconds(parts, rows)
    zero = np.zeros(rows, np.int64)
    micros = (days * 86_400 + seconds - parts.get("zone", zero)) * 1_000_000 + parts.get("fraction", zero)
    moments = np.where(is_possible & is_time, micros, 0).astype(DATE)
    if years != EVERY_YEAR:
        is_possible &= (parts["year"] >= years[0]) & (parts["year"] <= years[1])
    is_possible &= is_time & (moments >= FIRST_DATE) & (moments <= LAST_DATE)
    return np.where(is_possible, moments, NO_DATE)


def _unix_moments(parts: Mapping[str, Array]) -> Array:
    """Return the moments for Unix times in the unit whose field they have; see `moments_of`."""
    unit = next(unit for unit in UNITS if f"{FIELD}{unit.name}" in parts)
    ticks = parts[f"{FIELD}{unit.name}"]
    whole = ticks * (unit.nanoseconds // 1_000) if unit.nanoseconds > 1 else ticks // 1_000
    # A fraction has millionths of the unit.
    micros = whole + parts["fraction"] * unit.nanoseconds // 10**9
    moments = np.where(parts["negative"] == 1, -micros, micros).astype(DATE)
    return np.where((moments >= FIRST_DATE) & (moments <= LAST_DATE), moments, NO_DATE)


def _days(parts: Mapping[str, Array], rows: int) -> tuple[Array, Array]:
    """Return the days since 1970, and whether there are such days."""
    if "week" in parts:
        return _days_of_weeks(parts, rows)
    one = np.ones(rows, np.int64)
    year = parts["year"]
    if "quarter" in parts:
        month = 3 * parts["quarter"] - 2
    else:
        month = parts.get("month", parts.get("month_name", one))
    is_possible = (year >= 1) & (month >= 1) & (month <= _MONTHS)
    months = (year - 1970) * _MONTHS + np.clip(month, 1, _MONTHS) - 1
    length = 1
    if "day_of_year" in parts:
        length = _MONTHS
    first, end = _first_days(months), _first_days(months + length)
    day = parts.get("day_of_year", parts.get("day", one))
    return first + day - 1, is_possible & (day >= 1) & (day <= end - first)


def _first_days(months: Array) -> Array:
    """Return the first days of months since 1970, as days since 1970."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _days_of_weeks(parts: Mapping[str, Array], rows: int) -> tuple[Array, Array]:
    """Return the days for the weeks of ISO 8601: the first week of a year has its fourth of January."""
    year, week = parts["week_year"], parts["week"]
    weekday = parts.get("weekday", np.ones(rows, np.int64))
    fourth, fourth_of_next = (_first_days((first - 1970) * _MONTHS) + 3 for first in (year, year + 1))
    monday, end = (day - (day + _THURSDAY) % 7 for day in (fourth, fourth_of_next))
    days = monday + 7 * (week - 1) + weekday - 1
    is_possible = (year >= 1) & (week >= 1) & (days < end) & (weekday >= 1) & (weekday <= 7)
    return days, is_possible


def _seconds(parts: Mapping[str, Array], rows: int) -> tuple[Array, Array]:
    """Return the seconds since midnight, and whether there is such a time."""
    zero = np.zeros(rows, np.int64)
    hour, minute, second, half = (parts.get(name, zero) for name in ("hour", "minute", "second", "half"))
    is_midnight_at_end = (hour == 24) & (minute + second + parts.get("fraction", zero) == 0) & (half == 0)
    is_possible = ((hour < 24) | is_midnight_at_end) & (minute < 60) & (second < 60)
    # 0:30 AM is common too, but 0:30 PM and 13:05 PM could mean two times.
    is_possible &= (half == 0) | ((hour <= 12) & ((hour > 0) | (half == 1)))
    hour = np.where(half > 0, hour % 12 + 12 * (half == 2), hour)
    return (hour * 60 + minute) * 60 + second, is_possible & (np.abs(parts.get("zone", zero)) < 86_400)


def read_dates(texts: Sequence[str], formats: str) -> Array:
    """Return the moments that texts have by a date format, or by ISO 8601, (rows,); NaT for other texts.

    Args:
        texts: not empty.
        formats: the column's date format. A text that fits it and ISO 8601 has the meaning that it has in the
            column.
    """
    moments = np.full(len(texts), NO_DATE)
    # An expression may take long for a long text, which is no date.
    stripped = [plain_characters(text) if len(text) <= MAX_CHARACTERS else "" for text in texts]
    for form in formats_of(formats):
        rest = np.flatnonzero(np.isnat(moments)).tolist()
        written = {row: _with_zero(stripped[row], pattern_of(form)) for row in rest}
        matches = [(row, match) for row in rest if (match := _regex(form).match(written[row]))]
        if matches:
            rows = [row for row, _ in matches]
            parts = _parts([match.groupdict("") for _, match in matches])
            pattern = pattern_of(form)
            moments[rows] = moments_of(parts, len(rows), pattern.first_year, pattern.years)
    rest = np.flatnonzero(np.isnat(moments)).tolist()
    moments[rest] = iso_moments([stripped[row] for row in rest], formats)
    return moments


def without_dates(dates: Array, words: tuple[str, ...] | None, formats: str | None) -> Array:
    """Return dates, (rows,), with NaT for those among words, such as 9999-12-31, in each writing."""
    if not words or not (gaps := _dates_among(words, formats)):
        return dates
    is_gap = np.isin(dates, np.asarray(gaps, DATE))
    return np.where(is_gap, NO_DATE, dates) if is_gap.any() else dates


@functools.lru_cache(maxsize=1000)
def _dates_among(words: tuple[str, ...], formats: str | None) -> tuple[np.datetime64, ...]:
    """Return the moments among words, by a column's date format if it has one, and by ISO 8601."""
    texts = [word for word in words if word.strip()]
    if formats is not None and texts:
        moments = list(read_dates(texts, formats))
    else:
        moments = [iso_moment(word.strip()) for word in texts]
    return tuple(moment for moment in moments if not np.isnat(moment))


def _with_zero(text: str, pattern: DatePattern) -> str:
    """Return the text of a number that has lost the zero of its day with this zero."""
    is_short = len(text) == pattern.short_width and text.isdecimal()
    return f"0{text}" if is_short else text


def iso_moments(texts: Sequence[str], formats: str) -> Array:
    """Return the moments by ISO 8601 of texts that have none by a column's date format, (rows,), or NaT.

    In a column whose format is digits alone, other digits are no date, as the numbers of a file are none.
    Without hyphens, other numbers look like dates too, so only plausible years are read. Beside %Y-%d-%m, the
    same text would be two dates, so none is read by ISO 8601.
    """
    if not reads_iso(formats):
        return np.full(len(texts), NO_DATE, DATE)
    are_digits_known = any(pattern_of(form).is_digits for form in formats_of(formats))
    moments = np.asarray(
        [
            NO_DATE if are_digits_known and text.isdecimal() else iso_moment(text[:MAX_CHARACTERS])
            for text in texts
        ],
        DATE,
    )
    years = moments.astype("datetime64[Y]").astype(np.int64) + 1970
    is_compact = np.asarray([text[4:5] != "-" for text in texts], bool)
    is_plausible = (years >= DIGIT_YEARS[0]) & (years <= DIGIT_YEARS[1])
    return np.where(is_compact & ~is_plausible, NO_DATE, moments)


@functools.lru_cache(maxsize=1000)
def _regex(form: str) -> re.Pattern[str]:
    return re.compile(pattern_of(form).regex)


def _parts(matches: Sequence[Mapping[str, str]]) -> dict[str, Array]:
    """Return the parts of dates as numbers, by field."""
    parts = {}
    for field in matches[0]:
        texts = [match[field] for match in matches]
        if (meaning := WORDS.get(field)) is not None:
            numbers = [meaning(text) for text in texts]
        elif field == "fraction":
            numbers = [int(fraction_text(text)) for text in texts]
        else:
            numbers = [int(text or 0) for text in texts]
        parts[field] = np.asarray(numbers, np.int64)
    return parts


def iso_moment(text: str) -> np.datetime64:
    """Return the moment of a text with ISO 8601 in UTC; NaT for another text."""
    try:
        moment = datetime.datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    # In UTC it may be before the year 1 or after the year 9999.
    except (ValueError, OverflowError):
        return NO_DATE
    return np.datetime64(moment, "us")
