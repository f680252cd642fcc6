"""Defines Unix times: numbers that count seconds, or parts of these, since the beginning of 1970 in UTC."""

import datetime
import re
from typing import NamedTuple

FIELD = "unix_"
"""The field of a unit begins with it."""


class UnixUnit(NamedTuple):
    """A unit of Unix times.

    Attributes:
        name: its name in a date format, as in `unix seconds`.
        nanoseconds: how long it is.
        pattern: for the digits before a point; each date that a column can have fits, and 64 bits hold it.
    """

    name: str
    nanoseconds: int
    pattern: str

    @property
    def format(self) -> str:
        """The date format."""
        return f"unix {self.name}"

    @property
    def regex(self) -> str:
        """The expression for a whole text; see `formats.DatePattern`."""
        ticks = rf"(?P<negative>-?)(?P<{FIELD}{self.name}>{self.pattern})"
        return rf"^{ticks}(?:\.(?P<fraction>[0-9]{{1,9}})[0-9]*)?$"


UNITS = (
    UnixUnit("seconds", 10**9, "[0-9]{1,12}"),
    UnixUnit("milliseconds", 10**6, "[0-9]{1,15}"),
    UnixUnit("microseconds", 10**3, "[0-9]{1,18}"),
    UnixUnit("nanoseconds", 1, "[0-8]?[0-9]{1,18}"),
)
BY_FORMAT = {unit.format: unit for unit in UNITS}
_NAME = re.compile(
    r"(?:unix|epoch|posix)(?:[ _-]?(?:time(?:stamp)?|epoch)s?)?[ _-]*(?:in )?[ (]*"
    r"(?P<unit>s|sec|seconds?|ms|millis|milliseconds?|us|µs|μs|micros|microseconds?|ns|nanos|nanoseconds?)?\)?"
    r"|%s",
    re.IGNORECASE,
)
_EPOCH = datetime.datetime(1970, 1, 1)


def unix_format(stated: str) -> str | None:
    """Return the format of Unix times that a person wrote, such as `unix ms`; None if it is another one."""
    if (match := _NAME.fullmatch(stated.strip())) is None:
        return None
    unit = (match["unit"] or "s").lower().replace("µ", "u").replace("μ", "u")
    short = {"s": 0, "ms": 1, "mi": 1, "us": 2, "ns": 3, "na": 3}
    place = 2 if unit.startswith("micro") else short.get(unit[:2], 0)
    return UNITS[place].format


def unix_text(moment: datetime.datetime, unit: UnixUnit) -> str:
    """Return a moment, in UTC, as a whole number of a unit."""
    micros = (moment - _EPOCH) // datetime.timedelta(microseconds=1)
    return str(micros * 1_000 // unit.nanoseconds)
