"""Holds a column's different texts while it is found out which of them are dates."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from jobs.spec.data.dates.directives import SPACE, ZONE
from jobs.spec.data.dates.formats import pattern_of
from jobs.spec.data.gap_words import is_gap
from jobs.spec.data.offers import Misfits, misfit_words
from jobs.spec.data.plain_characters import plain_characters
from workers.engine.arrays import Array
from workers.features.date_texts import DATE, NO_DATE

MAX_EXAMPLES = 5
MAX_EXAMPLE_CHARACTERS = 100
TIMED = r"[0-9]:[0-9]{2}"
"""Of texts with a time of the day."""
ZONED = rf"(?i:[:.h][0-9]{{2}}(?:[.,][0-9]{{1,9}})?(?:{SPACE}*[ap]\.?{SPACE}?m\.?)?{SPACE}*{ZONE})(?:$|[ ,])"
"""Of those whose time has a zone, before the date or behind it."""
IN_UTC = r"(?i:Z|[^A-Z](?:UTC|GMT|UT|WET)|[^0-9][+-]0{1,2}(?::?00)*|[0-9][+-]0{1,2}(?::?00)*)(?:$|[ ,(\[])"
"""Of those whose zone has the time of UTC."""
MIDNIGHT = r"(?:^|[^0-9:])00:00"
SEARCHED = 1_000
"""Misfits among which the first ones of the column are looked for."""


class Zones(NamedTuple):
    """The time zones of dates.

    Attributes:
        times: how many rows have a time, if only some of these have a time zone; else 0.
        without_zone: how many of these have none.
        offset: a text whose time has an offset from UTC, at midnight if there is one; empty if none has.
    """

    times: int = 0
    without_zone: int = 0
    offset: str = ""


@dataclass
class DatedTexts:
    """A column's different texts with their rows and dates.

    Attributes:
        texts: those that are no gaps, without blanks around them, as an Arrow array.
        places: the position of each among all values of the column.
        codes: the value of each row by its position, (rows,).
        counts: how many rows have each text.
        moments: their dates so far.
    """

    texts: Any
    places: Array
    codes: Array
    counts: Array
    moments: Array = field(init=False)

    def __post_init__(self) -> None:
        self.moments = np.full(len(self.texts), NO_DATE, DATE)

    @property
    def unread(self) -> Array:
        """The numbers of the texts that have no date yet."""
        return np.flatnonzero(np.isnat(self.moments))

    def take(self, numbers: Array) -> Any:
        """Return some texts as an Arrow array."""
        import pyarrow as pa

        return self.texts if len(numbers) == len(self.texts) else self.texts.take(pa.array(numbers))

    def by_rows(self) -> Array:
        """Return the dates of all rows, (rows,)."""
        moments = np.full(int(self.codes.max(initial=-1)) + 1, NO_DATE, DATE)
        moments[self.places] = self.moments
        return moments[self.codes]

    def count_impossible(self, forms: Sequence[str]) -> int:
        """Return how many rows without a date have a text in the form of one."""
        import pyarrow.compute as pc

        unread = self.unread
        texts = self.take(unread)
        fits = np.zeros(len(unread), bool)
        for form in forms:
            fits |= pc.match_substring_regex(texts, pattern_of(form).regex).to_numpy(zero_copy_only=False)
        return int(self.counts[unread[fits]].sum())

    def zones(self) -> Zones:
        """Return which dates have a time zone."""
        import pyarrow.compute as pc

        read = np.flatnonzero(~np.isnat(self.moments))
        texts, counts = self.take(read), self.counts[read]
        zoned = pc.match_substring_regex(texts, ZONED)
        is_zoned = zoned.to_numpy(zero_copy_only=False)
        if not is_zoned.any():
            return Zones()
        offset = _with_offset(texts.filter(zoned))
        if is_zoned.all():
            return Zones(offset=offset)
        is_timed = pc.match_substring_regex(texts, TIMED).to_numpy(zero_copy_only=False) | is_zoned
        return Zones(int(counts[is_timed].sum()), int(counts[is_timed & ~is_zoned].sum()), offset)

    def misfits(self) -> Misfits | None:
        """Return the values that are no dates; None if there are none."""
        unread = self.unread
        if not len(unread):
            return None
        is_misfit = np.zeros(int(self.codes.max()) + 1, bool)
        is_misfit[self.places[unread]] = True
        rows = np.flatnonzero(is_misfit[self.codes])
        some = unread[:SEARCHED]
        texts = dict(zip(self.places[some].tolist(), self.take(some).to_pylist(), strict=True))
        codes = self.codes[rows[:SEARCHED]].tolist()
        first = [(row, texts[code]) for row, code in zip(rows, codes, strict=False) if code in texts]
        # With more different texts than are searched, none is a word.
        words, refused = misfit_words(self.take(some).to_pylist())
        return Misfits(
            words=words,
            refused=refused,
            count=len(rows),
            rows=tuple(int(row) + 1 for row, _ in first[:MAX_EXAMPLES]),
            examples=tuple(text[:MAX_EXAMPLE_CHARACTERS] for _, text in first[:MAX_EXAMPLES]),
        )


def _with_offset(texts: Any) -> str:
    """Return a text whose time zone is not UTC, among texts with a zone; see `Zones`."""
    import pyarrow.compute as pc

    texts = texts.filter(pc.invert(pc.match_substring_regex(texts, IN_UTC)))
    if not len(texts):
        return ""
    midnights = texts.filter(pc.match_substring_regex(texts, MIDNIGHT))
    return str((midnights if len(midnights) else texts)[0].as_py())


def _plain(texts: Any) -> Any:
    """Return texts, an Arrow array, with the digits and signs that programs write."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_ascii = pc.string_is_ascii(texts)
    if pc.all(is_ascii, min_count=0).as_py():
        return texts
    others = texts.filter(pc.invert(is_ascii)).to_pylist()
    plain = pa.array([plain_characters(text) for text in others], texts.type)
    return pc.replace_with_mask(texts, pc.invert(is_ascii), plain)


def dated_texts(values: Any, codes: Array) -> DatedTexts:
    """Return a column's texts without words for gaps.

    Args:
        values: its different texts, an Arrow array in the order of their first rows.
        codes: each row's position in `values`, (rows,).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = _plain(pc.utf8_trim_whitespace(values))
    # A word for a gap is short, or has no digit.
    may_be_gap = pc.or_(
        pc.less(pc.binary_length(texts), 6), pc.invert(pc.match_substring_regex(texts, "[0-9]"))
    )
    is_gap_word = may_be_gap.to_numpy(zero_copy_only=False).copy()
    for place in np.flatnonzero(is_gap_word).tolist():
        is_gap_word[place] = is_gap(texts[place].as_py())
    places = np.flatnonzero(~is_gap_word)
    counts = np.bincount(codes, minlength=len(values))[places]
    return DatedTexts(texts.take(pa.array(places)), places, codes, counts)
