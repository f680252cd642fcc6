"""Lists the directives of date formats: what each reads, and how it is written."""

import datetime
from collections.abc import Callable
from typing import NamedTuple

from jobs.spec.data.dates.names import ENGLISH, WEEKDAYS, ZONES

SPACE = "[ \t\u00a0\u202f]"
WORD = "[A-Za-zÀ-ÖØ-öø-žͰ-ϿЀ-ӿ]"
"""A letter of the names of months: Latin, Greek or Cyrillic."""
ZONE = (
    rf"(?P<zone>(?:UTC|GMT|UT)?[+-][0-9]{{1,2}}(?::?[0-9]{{2}}(?::?[0-9]{{2}})?)?|{'|'.join(ZONES)})"
    rf"(?:{SPACE}*[(\[][^)\]]*[)\]])?"
)
_TIME = (
    r"(?P<hour>[0-9]{1,2})(?:[:.h]?(?P<minute>[0-9]{2})"
    r"(?:[:.]?(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?)?"
    rf"(?:{SPACE}*(?P<half>[ap])\.?{SPACE}?m\.?)?(?:{SPACE}*{ZONE})?)?"
)
TIME = rf"(?:(?:{SPACE}+|{SPACE}*[T,:]{SPACE}*){_TIME}"
"""A time after a date. A comment may follow, as in JavaScript."""
TIME_WITHOUT_COLON = rf"(?:(?:{SPACE}+|{SPACE}*[T,]{SPACE}*){_TIME}"
"""A time after a date that has no colon between them."""


CLOCK = (
    r"(?P<hour>[0-9]{1,2})[:.h](?P<minute>[0-9]{2})"
    r"(?:[:.](?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?"
    rf"(?:{SPACE}*(?P<half>[ap])\.?{SPACE}?m\.?)?(?:{SPACE}*{ZONE})?(?:{SPACE}*,{SPACE}*|{SPACE}+)"
)
"""A time before a date."""


class Directive(NamedTuple):
    """The text that a directive reads.

    Attributes:
        field: the name of its group; none for text that decides nothing.
        pattern: for the group.
        write: returns the text for a moment.
        digits: the number's width between other digits; 0 for texts.
    """

    field: str
    pattern: str
    write: Callable[[datetime.datetime], str]
    digits: int = 0


def _number(field: str, digits: int, least: int, of: Callable[[datetime.datetime], int]) -> Directive:
    pattern = f"[0-9]{{{digits}}}" if least == digits else f"[0-9]{{{least},{digits}}}"
    return Directive(field, pattern, lambda moment: f"{of(moment):0{digits}}", digits)


DIRECTIVES: dict[str, Directive] = {
    "Y": _number("year", 4, 4, lambda moment: moment.year),
    "y": _number("short_year", 2, 2, lambda moment: moment.year % 100),
    "m": _number("month", 2, 1, lambda moment: moment.month),
    "d": _number("day", 2, 1, lambda moment: moment.day),
    "b": Directive("month_name", rf"{WORD}{{3,12}}", lambda moment: ENGLISH[moment.month - 1][:3]),
    "B": Directive("month_name", rf"{WORD}{{3,12}}", lambda moment: ENGLISH[moment.month - 1]),
    "q": _number("quarter", 1, 1, lambda moment: (moment.month + 2) // 3),
    "j": _number("day_of_year", 3, 3, lambda moment: moment.timetuple().tm_yday),
    "G": _number("week_year", 4, 4, lambda moment: moment.isocalendar().year),
    "V": _number("week", 2, 2, lambda moment: moment.isocalendar().week),
    "u": _number("weekday", 1, 1, lambda moment: moment.isoweekday()),
    "H": _number("hour", 2, 1, lambda moment: moment.hour),
    "I": _number("hour", 2, 1, lambda moment: (moment.hour - 1) % 12 + 1),
    "M": _number("minute", 2, 2, lambda moment: moment.minute),
    "S": _number("second", 2, 2, lambda moment: moment.second),
    "f": Directive("fraction", "[0-9]{1,9}", lambda moment: f"{moment.microsecond:06}"),
    "p": Directive("half", "[ap]", lambda moment: "AM" if moment.hour < 12 else "PM"),
    "z": Directive("zone", ZONE, lambda _: "+0000"),
    "a": Directive("", rf"{WORD}{{2,12}}\.?", lambda moment: WEEKDAYS[moment.weekday()][:3]),
    "A": Directive("", rf"{WORD}{{2,12}}\.?", lambda moment: WEEKDAYS[moment.weekday()]),
}
SYNONYMS = {
    "e": "%d",
    "k": "%H",
    "l": "%I",
    "h": "%b",
    "Z": "%z",
    "F": "%Y-%m-%d",
    "T": "%H:%M:%S",
    "R": "%H:%M",
    "D": "%m/%d/%y",
}
DAYS = (
    *({year, month, "day"} for year in ("year", "short_year") for month in ("month", "month_name")),
    *({year, "day_of_year"} for year in ("year", "short_year")),
    {"week_year", "week", "weekday"},
)
"""Fields that give a day."""
PERIODS = (
    *({year, part} for year in ("year", "short_year") for part in ("month", "month_name", "quarter")),
    {"week_year", "week"},
    {"year"},
)
"""Fields that give a longer period, which is read as its first day."""
