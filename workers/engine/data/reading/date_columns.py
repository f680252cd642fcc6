"""Recognizes columns of dates: which formats their texts have, as the whole column shows.

Most texts must be dates; see `DateFacts.are_most_dates`. The others are misfits, which become missing values.
"""

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jobs.spec.data.date_formats import ISO, MAX_FORMATS, OR, formats_of, pattern_of
from jobs.spec.data.date_names import MONTHS
from jobs.spec.data.gap_words import is_gap
from jobs.spec.data.offers import Misfits
from workers.engine.arrays import Array
from workers.engine.data.reading.date_facts import DateColumn, DateFacts
from workers.engine.data.reading.date_families import (
    Choice,
    Family,
    Order,
    choose_order,
    families_of,
)
from workers.engine.data.reading.date_values import dates_of, iso_dates_of
from workers.features.date_texts import DATE, NO_DATE

SAMPLED = 200
"""Texts, spread over the column, whose forms are looked up."""
COMPARED = 20_000
"""Texts, spread over the column, on which orders are tried: those that fit far fewer rows are dropped."""
DROPPED_SHARE = 0.9
MAX_EXAMPLES = 5
MAX_EXAMPLE_CHARACTERS = 100


@dataclass
class _Texts:
    """A column's different texts with their rows and dates.

    Attributes:
        texts: those that are no gaps, without blanks around them, as an Arrow array.
        counts: how many rows have each.
        moments: their dates so far.
    """

    texts: Any
    counts: Array
    moments: Array = field(init=False)

    def __post_init__(self) -> None:
        self.moments = np.full(len(self.texts), NO_DATE, DATE)

    @property
    def unread(self) -> Array:
        """The places of the texts that have no date yet."""
        return np.flatnonzero(np.isnat(self.moments))

    def take(self, places: Array) -> Any:
        """Return some texts as an Arrow array."""
        import pyarrow as pa

        return self.texts if len(places) == len(self.texts) else self.texts.take(pa.array(places))


def may_have_dates(texts: Sequence[str] | Array) -> bool:
    """Return whether some texts, spread over a column, have a form that dates have."""
    chosen = texts[:: max(len(texts) // SAMPLED, 1)]
    return any(families_of(str(text).strip()) for text in chosen)


def recognize_dates(values: Any, codes: Array) -> DateColumn | None:
    """Return a column's dates by the formats that its texts have; None if none of them has one.

    Args:
        values: its different texts, an Arrow array in the order of their first rows.
        codes: each row's position in `values`, (rows,).
    """
    known, places = _known(values, codes)
    chosen: list[tuple[Choice, int]] = []
    families: list[Family] = []
    others: tuple[str, ...] = ()
    example = ""
    while len(chosen) < MAX_FORMATS and len(unread := known.unread):
        found = _best_family(known, unread, {*families})
        if found is None:
            break
        family, choice = found
        families.append(family)
        new = ~np.isnat(choice.order.moments)
        form = _with_long_month(choice.order.form, known, unread[new])
        if choice.others and choice.evidence is None and chosen:
            # Which dates these are is not known, so they remain misfits; the first format keeps its own.
            others = tuple(
                OR.join([*(kept.order.form for kept, _ in chosen), other]) for other in (form, *choice.others)
            )
            example = _differing(known, unread, choice)
            break
        if choice.others and not chosen:
            others, example = choice.others, _differing(known, unread, choice)
        known.moments[unread[new]] = choice.order.moments[new]
        choice.order.form = form
        chosen.append((choice, int(known.counts[unread[new]].sum())))
    if not chosen:
        return None
    first = chosen[0][0]
    rest = [kept.order.form for kept, _ in chosen[1:]]
    if rest and others and not others[0].startswith(first.order.form + OR):
        others = tuple(OR.join([other, *rest]) for other in others)
    facts = DateFacts(
        format=OR.join(kept.order.form for kept, _ in chosen),
        present=int(known.counts.sum()),
        rows=tuple(rows for _, rows in chosen),
        impossible=_impossible(known, [kept.order.form for kept, _ in chosen]),
        misfits=_misfits(known, places, codes),
        others=others,
        example=example,
        evidence=first.evidence,
        rival=first.rival,
    )
    return DateColumn(_by_rows(known, places, len(values))[codes], facts)


def read_stated(values: Any, codes: Array, stated: str) -> DateColumn:
    """Return a column's dates by a stated format; see `recognize_dates`."""
    known, places = _known(values, codes)
    rows = []
    for form in formats_of(stated):
        unread = known.unread
        moments = _dates(known.take(unread), form)
        known.moments[unread] = moments
        rows.append(int(known.counts[unread[~np.isnat(moments)]].sum()))
    facts = DateFacts(
        format=stated,
        present=int(known.counts.sum()),
        rows=tuple(rows),
        misfits=_misfits(known, places, codes),
        is_stated=True,
    )
    return DateColumn(_by_rows(known, places, len(values))[codes], facts)


def _known(values: Any, codes: Array) -> tuple[_Texts, Array]:
    """Return the texts that are no gaps, and their places in `values`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.utf8_trim_whitespace(values)
    short = pc.binary_length(texts)
    # A word for a gap is short, and has few digits; a date has some.
    may_be_gap = pc.or_(pc.less(short, 6), pc.invert(pc.match_substring_regex(texts, "[0-9]")))
    is_gap_word = may_be_gap.to_numpy(zero_copy_only=False)
    for place in np.flatnonzero(is_gap_word).tolist():
        is_gap_word[place] = is_gap(texts[place].as_py())
    places = np.flatnonzero(~is_gap_word)
    counts = np.bincount(codes, minlength=len(values))[places]
    return _Texts(texts.take(pa.array(places)), counts), places


def _by_rows(known: _Texts, places: Array, size: int) -> Array:
    moments = np.full(size, NO_DATE, DATE)
    moments[places] = known.moments
    return moments


def _impossible(known: _Texts, forms: Sequence[str]) -> int:
    """Return how many rows without a date have the form of one."""
    import pyarrow.compute as pc

    unread = known.unread
    texts = known.take(unread)
    fits = np.zeros(len(unread), bool)
    for form in forms:
        fits |= pc.match_substring_regex(texts, pattern_of(form).regex).to_numpy(zero_copy_only=False)
    return int(known.counts[unread[fits]].sum())


def _misfits(known: _Texts, places: Array, codes: Array) -> Misfits | None:
    unread = known.unread
    if not len(unread):
        return None
    is_misfit = np.zeros(int(codes.max()) + 1, bool)
    is_misfit[places[unread]] = True
    texts = dict(zip(places[unread[:1000]].tolist(), known.take(unread[:1000]).to_pylist(), strict=True))
    rows = np.flatnonzero(is_misfit[codes])
    first = [row for row in rows[:1000].tolist() if int(codes[row]) in texts][:MAX_EXAMPLES]
    examples = tuple(texts[int(codes[row])][:MAX_EXAMPLE_CHARACTERS] for row in first)
    return Misfits(count=len(rows), rows=tuple(row + 1 for row in first), examples=examples)


def _dates(texts: Any, form: str) -> Array:
    if form == ISO and (moments := iso_dates_of(texts)) is not None:
        return moments
    return dates_of(texts, form)


def _best_family(known: _Texts, unread: Array, done: Set[Family]) -> tuple[Family, Choice] | None:
    """Return the family that most of the unread texts belong to, and its order; None if none fits any.

    Texts of a family that is done have another order than the chosen one, so they remain misfits.
    """
    sample = _spread(unread, SAMPLED)
    votes: dict[Family, int] = {}
    for text, rows in zip(known.take(sample).to_pylist(), known.counts[sample].tolist(), strict=True):
        for family in families_of(text):
            if family not in done:
                votes[family] = votes.get(family, 0) + rows
    for family in sorted(votes, key=lambda family: -votes[family]):
        if (choice := _choice(family, known, unread)) is not None:
            return family, choice
    return None


def _choice(family: Family, known: _Texts, unread: Array) -> Choice | None:
    """Return the order that a family has in the unread texts; None if it fits none of them."""
    forms = family.orders
    if len(forms) > 1 and len(unread) > COMPARED:
        few = _spread(unread, COMPARED)
        counts = known.counts[few]
        tried = [Order(form, dates_of(known.take(few), form), counts) for form in forms]
        most = max(order.rows for order in tried)
        forms = tuple(order.form for order in tried if order.rows >= DROPPED_SHARE * most)
    texts, counts = known.take(unread), known.counts[unread]
    orders = [Order(form, _plausible(_dates(texts, form), family), counts) for form in forms]
    choice = choose_order(orders, counts, is_settled=family.is_settled)
    fits = ~np.isnat(choice.order.moments)
    if not fits.any():
        return None
    if family.accepts is not None and not family.accepts(known.take(unread[fits]).to_pylist()):
        return None
    return choice


def _plausible(moments: Array, family: Family) -> Array:
    if family.years == (1, 9999):
        return moments
    first, last = (np.datetime64(f"{year:04}", "Y") for year in family.years)
    years = moments.astype("datetime64[Y]")
    return np.where((years >= first) & (years <= last), moments, NO_DATE)


def _spread(places: Array, most: int) -> Array:
    """Return at most about so many places, evenly spread."""
    return places[:: max(len(places) // most, 1)]


def _differing(known: _Texts, unread: Array, choice: Choice) -> str:
    """Return a text that has another date in another order."""
    other = dates_of(known.take(unread), choice.others[0])
    differs = ~np.isnat(choice.order.moments) & (other != choice.order.moments)
    place = unread[int(np.argmax(differs))]
    return str(known.texts[int(place)].as_py())


def _with_long_month(form: str, known: _Texts, places: Array) -> str:
    """Return a format as it would be written for a text: %B if the first texts have long names of months."""
    if "%b" not in form or not len(places):
        return form
    names = re.findall(r"[^\W\d_]{4,}", " ".join(known.take(places[:20]).to_pylist()))
    return form.replace("%b", "%B") if any(name.lower() in MONTHS for name in names) else form
