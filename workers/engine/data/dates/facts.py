"""Describes a column of dates: its formats, others that could be meant, and its misfits."""

from dataclasses import dataclass

from jobs.spec.data.offers import Misfits
from workers.engine.arrays import Array
from workers.engine.data.dates.orders import Evidence

MIN_WRITTEN, MIN_POSSIBLE = 2 / 3, 1 / 2
"""A column is of dates if more of its values are written as dates, and more of them are possible dates."""
NAMED_SHARE = 1 / 10
"""From this share of dates on, a column of words gets the offer to be read as dates."""


@dataclass(frozen=True)
class DateFacts:
    """How the texts of a column are dates.

    Attributes:
        format: its formats, separated by " or ".
        present: how many rows have a value.
        rows: how many rows each format has read.
        impossible: how many rows are written as dates, but are none, such as 2021-02-30.
        misfits: the values that are no dates, with the impossible ones.
        others: formats that could be meant as well, with other dates.
        example: a text that has another date in these.
        evidence: what has chosen the format among these; None if nothing has.
        rival: a format that fits misfits, and how many rows.
        is_stated: whether a person stated the format.
        words: words behind dates that give no single offset from UTC; their column is none of dates.
        is_digits: whether the column has numbers, such as 20211224.
        is_whole: whether all of these are whole.
        times: how many rows have a time, if only some of these have a time zone; else 0.
        without_zone: how many of these have none.
        offset: a text whose time has an offset from UTC; empty if none has.
        span: the first and the last date of Unix times.
        doubt: why the texts may be no dates, although all have the form of one; empty for a certain column.
    """

    format: str
    present: int
    rows: tuple[int, ...] = ()
    impossible: int = 0
    misfits: Misfits | None = None
    others: tuple[str, ...] = ()
    example: str = ""
    evidence: Evidence | None = None
    rival: tuple[str, int] | None = None
    is_stated: bool = False
    is_digits: bool = False
    is_whole: bool = True
    times: int = 0
    without_zone: int = 0
    words: tuple[str, ...] = ()
    offset: str = ""
    span: tuple[str, str] | None = None
    doubt: str = ""

    @property
    def share(self) -> float:
        """Which share of the values are dates."""
        return sum(self.rows) / max(self.present, 1)

    @property
    def are_most_dates(self) -> bool:
        """Whether the column is of dates, although some values are none."""
        if self.doubt:
            return False
        written = self.share + self.impossible / max(self.present, 1)
        return written > MIN_WRITTEN and self.share > MIN_POSSIBLE


@dataclass(frozen=True)
class DateColumn:
    """The dates of a column, (rows,) datetime64 in UTC, and how its texts are dates."""

    moments: Array
    facts: DateFacts
