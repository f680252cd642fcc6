"""Defines date formats: patterns that make dates of texts, alike in a file and in a request.

A format has the directives of `strptime`, such as `%d.%m.%Y`, and `%q` for a quarter. It describes the date.
A time may follow a whole day whether the format has one or not, since a time is never in doubt: `10:30`,
`10:30:00.5`, `3:05 PM`, each with an offset from UTC or without; before a day, as in `%H:%M %d.%m.%Y`, it may
be any of these too. Several formats are separated by " or ". `unix seconds`, and the same with milliseconds,
microseconds or nanoseconds, are the numbers of `unix_times`.
"""

import datetime
import functools
import re
from typing import NamedTuple

from jobs.spec.data.dates.directives import (
    CLOCK,
    DAYS,
    DIRECTIVES,
    PERIODS,
    SPACE,
    SYNONYMS,
    TIME,
    TIME_WITHOUT_COLON,
)
from jobs.spec.data.dates.unix_times import BY_FORMAT, unix_format, unix_text
from jobs.spec.data.plain_characters import plain_characters

ISO = "%Y-%m-%d"
ISO_NAME = re.compile(r"iso(?:[ -]?8601)?", re.IGNORECASE)
OR = " or "
MAX_FORMATS = 5
MAX_FORMAT = 100
FIRST_YEAR = 1969
"""Years of two digits are those from 1969 to 2068, as in POSIX. `%y{1930}` is for those from 1930 to 2029."""
EVERY_YEAR = (1, 9999)
EXAMPLE = datetime.datetime(2021, 12, 24, 15, 5, 30)
EXAMPLES = "%d/%m/%Y for 24/12/2021, or %Y-%m-%d %H:%M for 2021-12-24 15:05"
"""For messages."""

_TIMES = frozenset({"hour", "minute", "second", "fraction", "half", "zone"})
_TIME_AT_END = re.compile(
    r"(?:[ T,:]+)%[HI](?:[:.h]%M(?:[:.]%S(?:[.,]%f)?)?)?(?: ?%p)?(?: ?%z|Z)?$|[ T,:]+%H%M(?:%S)?(?: ?%z|Z)?$"
)
_TIME_AT_BEGIN = re.compile(r"%[HI][:.h]%M(?:[:.]%S(?:[.,]%f)?)?(?: ?%p)?(?: ?%z|Z)?[ ,]+")
_WINDOW = re.compile(r"%y\{([0-9]{4})\}")
_YEARS = re.compile(r"%Y\{([0-9]{4})-([0-9]{4})\}")
"""The first and the last year of a format whose other texts are no dates."""


class DatePattern(NamedTuple):
    """A format as a regular expression, for both `re` and RE2.

    Attributes:
        regex: for a whole text without blanks around it. Its groups have the names of the fields.
        fields: the group names in their order.
        is_digits: whether its texts are digits alone, so that numbers can be such dates.
        width: how many digits these are.
        first_year: the first one that two digits can mean.
        short_width: how many digits they are if a number has lost the zero before its day or month; 0 if it
            begins with a year.
        years: the first and the last one that four digits can mean.
        is_unix: whether its texts are Unix times, which may have a fraction.
        excludes_iso: whether its texts look like ISO 8601 with other dates, so that this is not read as well.
    """

    regex: str
    fields: tuple[str, ...]
    is_digits: bool = False
    width: int = 0
    first_year: int = FIRST_YEAR
    short_width: int = 0
    years: tuple[int, int] = EVERY_YEAR
    is_unix: bool = False
    excludes_iso: bool = False


def formats_of(stated: str) -> tuple[str, ...]:
    """Return the single formats that a date format consists of."""
    return tuple(stated.split(OR))


def check_date_format(stated: str) -> str:
    """Return a date format as it is stored.

    Raises:
        ValueError: it is none; the message has an example.
    """
    parts = [part.strip() for part in stated.split(OR)]
    formats = [ISO if ISO_NAME.fullmatch(part) else unix_format(part) or part for part in parts]
    if len(stated) > MAX_FORMAT * MAX_FORMATS or len(formats) > MAX_FORMATS:
        raise ValueError(f"a date format has at most {MAX_FORMATS} alternatives with {MAX_FORMAT} characters")
    for part in formats:
        pattern_of(part)
    return OR.join(formats)


@functools.lru_cache(maxsize=1000)
def pattern_of(form: str) -> DatePattern:
    """Return the pattern for a single format.

    Raises:
        ValueError: it is no format; the message has an example.
    """
    if (unit := BY_FORMAT.get(form)) is not None:
        groups = tuple(re.compile(unit.regex).groupindex)
        return DatePattern(unit.regex, groups, is_digits=True, is_unix=True)
    pieces = _pieces(form)
    fields = [DIRECTIVES[piece[1]].field for piece in pieces if piece[0] == "%"]
    fields = [field for field in fields if field]
    weekdays = sum(piece in ("%a", "%A") for piece in pieces)
    if len({*fields}) < len(fields) or weekdays > 1:
        raise _bad(form, "it has a part twice")
    dated = {*fields} - _TIMES
    has_day = dated in DAYS
    if not has_day and dated not in PERIODS:
        raise _bad(form, "a date needs a year and a month with its day, such as %Y, %m and %d")
    if ("half" in fields) != any(piece == "%I" for piece in pieces):
        raise _bad(form, "%I, an hour up to 12, needs %p for AM or PM")
    timed = {*fields} & _TIMES
    if timed and (not has_day or "hour" not in timed or ("second" in timed and "minute" not in timed)):
        raise _bad(form, "a time needs a day and an hour, as in %d.%m.%Y %H:%M")
    regex = _regex(pieces, has_day=has_day, has_time=bool(timed))
    has_only_digits = all(piece[0] == "%" and DIRECTIVES[piece[1]].digits for piece in pieces)
    width = sum(DIRECTIVES[piece[1]].digits for piece in pieces) if has_only_digits else 0
    first_year = int(match[1]) if (match := _WINDOW.search(form)) else FIRST_YEAR
    years = (int(match[1]), int(match[2])) if (match := _YEARS.search(form)) else EVERY_YEAR
    names = tuple(re.compile(regex).groupindex)
    short = width - 1 if has_only_digits and pieces[0] in ("%d", "%m") else 0
    is_like_iso = any(clash in "".join(pieces) for clash in ("%Y-%d-%m", "%Y%d%m"))
    return DatePattern(
        f"^(?i:{regex})$",
        names,
        has_only_digits,
        width,
        first_year,
        short,
        years,
        excludes_iso=is_like_iso,
    )


def reads_iso(stated: str) -> bool:
    """Return whether ISO 8601 is read beside a date format, since no text of it could be meant by both."""
    return not any(pattern_of(form).excludes_iso for form in formats_of(stated))


def with_years(form: str, years: tuple[int, int]) -> str:
    """Return a format that reads years from the first to the last one alone."""
    return form.replace("%Y", f"%Y{{{years[0]}-{years[1]}}}")


def _bad(form: str, reason: str) -> ValueError:
    hint = f"; it may mean {meant!r}" if (meant := _translated(form)) else ""
    return ValueError(f"{form!r} is no date format: {reason}{hint}. Write for example {EXAMPLES}")


def _pieces(form: str) -> list[str]:
    """Return a format's directives and the characters between them, without a usual time at its end."""
    if len(form) > MAX_FORMAT:
        raise ValueError(f"a date format has at most {MAX_FORMAT} characters")
    # Several blanks in a row would make the expression slow, and mean no more than one.
    plain = re.sub(r"\s+", " ", plain_characters(form))
    whole = _YEARS.sub("%Y", _WINDOW.sub("%y", plain))
    whole = re.sub(r"%[-#]?([ekhlZFTRD])", lambda match: SYNONYMS[match[1]], whole)
    whole = re.sub(r"%[-#]([a-zA-Z])", r"%\1", whole)
    pieces = re.findall(r"%.?|[^%]", whole, re.DOTALL)
    for piece in pieces:
        if piece[0] == "%" and piece[1:] not in DIRECTIVES:
            raise _bad(form, f"there is no directive {piece!r}")
    return pieces


def _regex(pieces: list[str], *, has_day: bool, has_time: bool) -> str:
    """Return the regular expression for directives and characters; see `DatePattern`."""
    whole = "".join(pieces)
    if has_time and (tail := _TIME_AT_END.search(whole)) is not None:
        date = whole[: tail.start()]
        # Any usual time may be there, so that those at midnight or without seconds need no other format.
        if not any(piece in date for piece in ("%H", "%I", "%z")):
            return _regex(re.findall(r"%.|[^%]", date), has_day=True, has_time=False)
    if has_time and (head := _TIME_AT_BEGIN.match(whole)) is not None:
        date = whole[head.end() :]
        if not any(piece in date for piece in ("%H", "%I", "%z")):
            return CLOCK + _regex(re.findall(r"%.|[^%]", date), has_day=False, has_time=False)
    has_name = any(piece in ("%b", "%B") for piece in pieces)
    parts = []
    for place, piece in enumerate(pieces):
        around = pieces[max(place - 1, 0) : place] + pieces[place + 1 : place + 2]
        parts.append(_part(piece, is_tight=any(_is_number(other) for other in around), has_name=has_name))
    if not has_day or has_time:
        return "".join(parts)
    # In "Dec 24 15:05:00" of a log without years, 15 is the hour.
    may_be_hour = pieces[-1] == "%y" and pieces[-2].isspace()
    return "".join(parts) + (TIME_WITHOUT_COLON if may_be_hour else TIME)


def _is_number(piece: str) -> bool:
    return piece[0] == "%" and DIRECTIVES[piece[1]].digits > 0


def _part(piece: str, *, is_tight: bool, has_name: bool) -> str:
    """Return the pattern for a directive or a character.

    Args:
        piece: the directive or character.
        is_tight: whether another number is next to it, so that only its width separates them.
        has_name: whether the month is a word, so that the day may be 1st or 24th.
    """
    if piece.isspace():
        return f"{SPACE}+"
    if piece[0] != "%":
        return re.escape(piece)
    field, pattern, _, digits = DIRECTIVES[piece[1]]
    if piece == "%z":
        return f"{SPACE}*{pattern}"
    if not field:
        return pattern
    if piece == "%p":
        return rf"(?P<half>{pattern})\.?{SPACE}?m\.?"
    if field == "month_name":
        return rf"(?P<month_name>{pattern})\.?"
    if digits and is_tight:
        pattern = f"[0-9]{{{digits}}}"
    ordinal = "(?:st|nd|rd|th)?" if field == "day" and has_name else ""
    return f"(?P<{field}>{pattern}){ordinal}"


def write_date(moment: datetime.datetime, form: str) -> str:
    """Return a moment, in UTC, as a text with a single format."""
    if (unit := BY_FORMAT.get(form)) is not None:
        return unix_text(moment, unit)
    return "".join(
        DIRECTIVES[piece[1]].write(moment) if piece[0] == "%" else piece for piece in _pieces(form)
    )


def example_of(stated: str) -> str:
    """Return the formats with an example of each, for messages: `"12/24/2021" (%m/%d/%Y)`."""
    return OR.join(f'"{write_date(EXAMPLE, form)}" ({form})' for form in formats_of(stated))


_WRITTEN = {
    "yyyy": "%Y",
    "yy": "%y",
    "mmmm": "%B",
    "mmm": "%b",
    "dd": "%d",
    "d": "%d",
    "hh": "%H",
    "h": "%H",
    "ss": "%S",
    "tt": "%p",
    "am/pm": "%p",
}
"""What spreadsheets and other languages write instead of directives."""


def _translated(form: str) -> str | None:
    """Return the format that a pattern such as DD/MM/YYYY means; None if it is none."""
    if "%" in form:
        return None
    after_hour = False

    def directive(match: re.Match[str]) -> str:
        nonlocal after_hour
        word = match[0].lower()
        if word in ("m", "mm"):
            return "%M" if after_hour else "%m"
        after_hour = after_hour or word in ("hh", "h")
        return _WRITTEN[word]

    written = re.sub(r"(?i)y{4}|y{2}|m{1,4}|d{1,2}|h{1,2}|ss|tt|am/pm", directive, form)
    if "%p" in written:
        written = written.replace("%H", "%I")
    try:
        return written if "%" in written and pattern_of(written) else None
    except ValueError:
        return None
