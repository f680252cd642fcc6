"""Recognizes columns of dates: which formats their texts have, as the whole column shows.

Most texts must be dates; see `DateFacts.are_most_dates`. The others are misfits, which become missing values.
"""

import re
from collections.abc import Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jobs.spec.data.dates.formats import EVERY_YEAR, ISO, MAX_FORMATS, OR, formats_of, with_years
from jobs.spec.data.dates.names import MONTHS
from jobs.spec.data.plain_characters import plain_characters
from workers.engine.arrays import Array
from workers.engine.data.dates.facts import DateColumn, DateFacts
from workers.engine.data.dates.families import Family, families_of
from workers.engine.data.dates.orders import Choice, Order, choose_order, differ
from workers.engine.data.dates.texts import DatedTexts, dated_texts
from workers.engine.data.dates.values import dates_of, iso_dates_of
from workers.features.date_texts import NO_DATE, iso_moments

SAMPLED = 200
"""Texts, spread over the column, whose forms are looked up."""
COMPARED = 20_000
"""Texts, spread over the column, on which orders are tried: those that fit far fewer rows are dropped."""
DROPPED_SHARE = 0.9


def may_have_dates(texts: Array, codes: Array | None = None) -> bool:
    """Return whether rows, spread over a column, have texts in a form that dates have.

    Args:
        texts: of all rows; each different one once if `codes` are given.
        codes: each row's position in `texts`.
    """
    return any(families_of(plain_characters(text)) for text in some_texts(texts, codes))


def some_texts(texts: Array, codes: Array | None = None) -> list[str]:
    """Return texts of rows that are spread over a column; see `may_have_dates`."""
    rows = len(texts) if codes is None else len(codes)
    chosen = slice(None, None, max(rows // SAMPLED, 1))
    some = texts[chosen] if codes is None else texts[codes[chosen]]
    return [str(text) for text in some.tolist()]


def recognize_dates(values: Any, codes: Array) -> DateColumn | None:
    """Return a column's dates by the formats that its texts have; None if none of them has one.

    Args:
        values: its different texts, an Arrow array in the order of their first rows.
        codes: each row's position in `values`, (rows,).
    """
    known = dated_texts(values, codes)
    formats = _choose_formats(known)
    if not formats.choices:
        return None
    forms, rows = [choice.order.form for choice in formats.choices], formats.rows
    if read := _read_iso(known, OR.join(forms)):
        if ISO not in forms:
            forms, rows = [*forms, ISO], [*rows, 0]
        rows[forms.index(ISO)] += read
    first = formats.choices[0]
    others = tuple(OR.join([other, *forms[1:]]) for other in first.others)
    if not others and len(forms) < MAX_FORMATS:
        others = tuple(OR.join([*forms, other]) for other in formats.unclear)
    zones = known.zones()
    facts = DateFacts(
        format=OR.join(forms),
        present=int(known.counts.sum()),
        rows=tuple(rows),
        impossible=known.count_impossible(forms),
        misfits=known.misfits(),
        others=others,
        example=formats.example,
        evidence=first.evidence,
        rival=first.rival,
        times=zones.times,
        without_zone=zones.without_zone,
        offset=zones.offset,
        doubt=first.doubt,
    )
    return DateColumn(known.by_rows(), facts)


@dataclass
class _Formats:
    """The formats that were chosen for a column.

    Attributes:
        choices: with their forms, in the order in which they were chosen.
        rows: how many rows each has read.
        unclear: the formats that further texts may have; which of them is not known.
        example: a text that shows the choice, or the one that is not known.
    """

    choices: list[Choice] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    unclear: tuple[str, ...] = ()
    example: str = ""


def _choose_formats(known: DatedTexts) -> _Formats:
    """Choose one format after the other for the texts that are unread, and read them."""
    formats, done = _Formats(), set[Family]()
    # ISO 8601 is read in addition.
    while len(formats.choices) < MAX_FORMATS - 1 and len(unread := known.unread):
        found = _best_family(known, unread, done)
        if found is None:
            break
        family, choice = found
        done.add(family)
        new = ~np.isnat(choice.order.moments)
        form = _with_long_month(choice.order.form, known, unread[new])
        if formats.choices and (choice.doubt or (choice.others and choice.evidence is None)):
            # Which dates these are is not known, so they remain misfits; the first format keeps its own.
            if not formats.example and not choice.doubt:
                formats.unclear = (form, *choice.others)
                formats.example = _example(known, unread, choice)
            continue
        if not formats.choices:
            formats.example = _example(known, unread, choice)
        known.moments[unread[new]] = choice.order.moments[new]
        if family.years != EVERY_YEAR and _has_dates(known, form):
            # Requests are read by the format alone.
            form = with_years(form, family.years)
        choice.order.form = form
        formats.choices.append(choice)
        formats.rows.append(int(known.counts[unread[new]].sum()))
    return formats


def read_stated(values: Any, codes: Array, stated: str) -> DateColumn:
    """Return a column's dates by a stated format; see `recognize_dates`."""
    known = dated_texts(values, codes)
    rows = []
    for form in formats_of(stated):
        unread = known.unread
        moments = _dates(known.take(unread), form)
        known.moments[unread] = moments
        rows.append(int(known.counts[unread[~np.isnat(moments)]].sum()))
    _read_iso(known, stated)
    zones = known.zones()
    facts = DateFacts(
        format=stated,
        present=int(known.counts.sum()),
        rows=tuple(rows),
        misfits=known.misfits(),
        is_stated=True,
        times=zones.times,
        without_zone=zones.without_zone,
        offset=zones.offset,
    )
    return DateColumn(known.by_rows(), facts)


def _read_iso(known: DatedTexts, formats: str) -> int:
    """Read the texts by ISO 8601 that no format of a column has read, as requests do.

    Returns:
        How many rows have such a text.
    """
    unread = known.unread
    moments = iso_moments(known.take(unread).to_pylist(), formats)
    known.moments[unread] = moments
    return int(known.counts[unread[~np.isnat(moments)]].sum())


def _dates(texts: Any, form: str) -> Array:
    if form == ISO and (moments := iso_dates_of(texts)) is not None:
        return moments
    return dates_of(texts, form)


def _best_family(known: DatedTexts, unread: Array, done: Set[Family]) -> tuple[Family, Choice] | None:
    """Return the family that most of the unread texts belong to, and its order; None if none fits any.

    Texts of a family that is done have another order than the chosen one, so they remain misfits.
    """
    sample = unread[_spread_rows(known.counts[unread])]
    votes: dict[Family, int] = {}
    for text, rows in zip(known.take(sample).to_pylist(), known.counts[sample].tolist(), strict=True):
        for family in families_of(text):
            if family not in done:
                votes[family] = votes.get(family, 0) + rows
    for family in sorted(votes, key=lambda family: -votes[family]):
        if (choice := _choice(family, known, unread)) is not None:
            return family, choice
    return None


def _choice(family: Family, known: DatedTexts, unread: Array) -> Choice | None:
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
        return replace(choice, doubt=family.doubt) if family.doubt else None
    return choice


def _has_dates(known: DatedTexts, form: str) -> bool:
    """Return whether a format would read further texts."""
    return bool((~np.isnat(_dates(known.take(known.unread), form))).any())


def _plausible(moments: Array, family: Family) -> Array:
    if family.years == EVERY_YEAR:
        return moments
    first, last = (np.datetime64(f"{year:04}", "Y") for year in family.years)
    years = moments.astype("datetime64[Y]")
    return np.where((years >= first) & (years <= last), moments, NO_DATE)


def _spread_rows(counts: Array) -> Array:
    """Return the places of texts that rows, evenly spread, have: a frequent text is not missed."""
    ends = np.cumsum(counts)
    rows = np.arange(0, ends[-1], max(int(ends[-1]) // SAMPLED, 1))
    return np.unique(np.searchsorted(ends, rows, side="right"))


def _spread(places: Array, most: int) -> Array:
    """Return at most about so many places, evenly spread."""
    return places[:: max(len(places) // most, 1)]


def _example(known: DatedTexts, unread: Array, choice: Choice) -> str:
    """Return a text that has another date in another order, in as many as possible, or may be no date."""
    if not choice.others and not choice.doubt:
        return ""
    texts, counts = known.take(unread), known.counts[unread]
    others = [Order(form, dates_of(texts, form), counts) for form in choice.others]
    fits = [differ(choice.order, other) for other in others] or [~np.isnat(choice.order.moments)]
    differing = np.sum(fits, axis=0)
    return str(texts[int(np.argmax(differing))].as_py())


def _with_long_month(form: str, known: DatedTexts, places: Array) -> str:
    """Return a format as it would be written for a text: %B if the first texts have long names of months."""
    if "%b" not in form or not len(places):
        return form
    names = re.findall(r"[^\W\d_]{4,}", " ".join(known.take(places[:20]).to_pylist()))
    return form.replace("%b", "%B") if any(name.lower() in MONTHS for name in names) else form
