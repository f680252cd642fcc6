"""Describes how columns were read as dates, and offers the other ways in which they could be read."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from jobs.spec.data.columns import LONE_ROLES, ColumnRequest, ColumnType
from jobs.spec.data.dates.formats import FIRST_YEAR, MAX_FORMATS, example_of, formats_of
from jobs.spec.data.offers import Misfits, Offer
from workers.engine.arrays import Array
from workers.engine.data.dates.facts import NAMED_SHARE, DateFacts
from workers.engine.data.dates.sentences import about_words, describe_formats, describe_zones
from workers.engine.data.schema import ColumnSchema
from workers.engine.data.statistics import MOST_NAMED
from workers.features.date_texts import read_dates

SPREADSHEET_YEAR = 1930
"""The first of the years that two digits mean in spreadsheets."""
MONTH, DAY, YEAR = ("%m", "%b", "%B"), ("%d",), ("%Y", "%y")


class DateFindings(NamedTuple):
    """Sentences about columns of dates, and offers to read them in another way."""

    sentences: list[str]
    offers: list[Offer]


def find_date_issues(columns: Mapping[str, Array], schema: Mapping[str, ColumnSchema]) -> DateFindings:
    """Return the doubts about columns of dates.

    Args:
        columns: by name, (rows,) each, with the types of `schema`.
        schema: role, type and facts on dates by column name.
    """
    found, with_doubts = DateFindings([], []), 0
    for name, column in schema.items():
        if column.dates is None or _is_unused(column):
            continue
        sentences = [
            *describe_formats(name, column, column.dates),
            *describe_zones(name, column, column.dates),
        ]
        offers = [*_offers(name, column, column.dates, columns)]
        with_doubts += bool(sentences or offers)
        if with_doubts <= MOST_NAMED:
            found.sentences.extend(sentences)
            found.offers.extend(offers)
    if with_doubts > MOST_NAMED:
        found.sentences.append(
            f"{with_doubts - MOST_NAMED:,} more columns could be read as dates in several ways; the table of "
            "columns has their formats and missing values."
        )
    return found


def _is_unused(column: ColumnSchema) -> bool:
    """Return whether nothing is read from the column; one that its values made an identifier may be dates."""
    return column.role in ("id", "ignore") and column.judgement.reason is None


def _offers(
    name: str, column: ColumnSchema, facts: DateFacts, columns: Mapping[str, Array]
) -> Iterator[Offer]:
    """Yield the other ways in which a column could be read."""
    if column.type != "date":
        # Its values are classes or numbers to predict: as dates, those that are none would have no target.
        if column.role != "target":
            yield from _possible_dates(name, column, facts)
        return
    yield from _orders(name, column, facts)
    yield from _numbers(name, column, facts)
    yield from _misfits(name, column, facts)
    # A column of a large table is read each time.
    if "%y" in facts.format and not facts.is_stated:
        yield from _short_years(name, column, facts, columns[name])


def _offer(
    name: str,
    column: ColumnSchema,
    finding: str,
    label: str,
    kind: ColumnType,
    date_format: str | None = None,
) -> Offer:
    # Accepting it replaces the earlier choices for the column.
    role = column.role if column.role in (*LONE_ROLES, "target") else None
    change = ColumnRequest(name=name, role=role, type=kind, date_format=date_format)
    return Offer(finding=finding, label=label, change=change)


def _possible_dates(name: str, column: ColumnSchema, facts: DateFacts) -> Iterator[Offer]:
    """Yield the offer to read words or numbers as dates."""
    if facts.words:
        if facts.format:
            finding = about_words(name, facts)
            yield _offer(
                name, column, finding, f"Read as dates, without {facts.words[0]!r}", "date", facts.format
            )
        return
    example = example_of(facts.format)
    if facts.is_digits:
        why = facts.doubt or "neither its name nor its steps make that sure"
        kind = "words" if column.type == "category" else "numbers"
        finding = (
            f"The numbers of column {name!r} could be {_kind_of_numbers(facts)}. They are read as {kind}, "
            f"because {why}."
        )
        if facts.others:
            others = "; or ".join(example_of(form) for form in facts.others)
            finding += f" They could also be dates such as {others}."
    elif facts.doubt:
        finding = (
            f"Values of column {name!r} such as {facts.example!r} could be months, this one "
            f"{_day(facts.example, facts.format)[:7]}, or {facts.doubt}. They are read as {column.type}."
        )
    elif facts.share >= NAMED_SHARE and column.type == "category":
        finding = (
            f"{sum(facts.rows):,} of {facts.present:,} values of column {name!r} are dates such as "
            f"{example}; {_named(facts.misfits)}. It is read as {column.type}, since too many are no dates."
        )
    else:
        return
    yield _offer(name, column, finding, "Read it as dates", "date", facts.format)
    for form in facts.others if facts.is_digits else ():
        label = f"Read it as dates, {_order_of(form, facts.format)}"
        yield _offer(name, column, finding, label, "date", form)


def _kind_of_numbers(facts: DateFacts) -> str:
    """Return which dates numbers are, for a sentence."""
    if facts.span is None:
        return f"dates such as {example_of(facts.format)}"
    first, last = facts.span
    unit = facts.format.removeprefix("unix ")
    return f"Unix times, which count {unit} since 1970, here from {first} to {last}"


def _orders(name: str, column: ColumnSchema, facts: DateFacts) -> Iterator[Offer]:
    """Yield the orders of day and month that the column could have: the chosen one, and the others."""
    if not facts.others:
        return
    why = {
        None: "nothing in the column decides the order of day and month",
        "steps": "its dates then follow each other in even steps",
        "order": "its dates then follow the order of the rows",
        "days": "in another order more of its dates are after today, or years are its days of the month",
    }[facts.evidence]
    chosen = _order_of(facts.format, facts.others[0])
    if len(facts.rows) < len(formats_of(facts.others[0])):
        finding = (
            f"Column {name!r} has dates in several formats, and the order of day and month of some, such as "
            f"{facts.example!r}, is not clear. These count as missing."
        )
    else:
        readings = "; or ".join(
            f"{_day(facts.example, form)} as {_order_of(form, facts.format)} ({form})"
            for form in facts.others
            if not np.isnat(read_dates([facts.example], form)[0])
        )
        finding = (
            f"Column {name!r}: {facts.example!r} is read as {_day(facts.example, facts.format)}, "
            f"{chosen} ({facts.format}), since {why}. It could also be {readings}."
        )
    if len(facts.rows) == len(formats_of(facts.others[0])):
        yield _offer(name, column, finding, f"Keep {chosen}", "date", facts.format)
    for form in facts.others:
        label = f"Read it as {_order_of(form, facts.format)}"
        yield _offer(name, column, finding, label, "date", form)


def _numbers(name: str, column: ColumnSchema, facts: DateFacts) -> Iterator[Offer]:
    """Yield the offer to read numbers as numbers that were read as dates."""
    if facts.is_digits and not facts.is_stated:
        finding = (
            f"The numbers of column {name!r} are read as {_kind_of_numbers(facts)}, as its name or its steps "
            "show."
        )
        kind: ColumnType = "integer" if facts.is_whole else "number"
        yield _offer(name, column, finding, f"Read it as {'whole ' * facts.is_whole}numbers", kind)


def _misfits(name: str, column: ColumnSchema, facts: DateFacts) -> Iterator[Offer]:
    """Yield the offer to read the column as words, or in two orders, if some values are no dates."""
    if facts.misfits is None:
        return
    finding = (
        f"{sum(facts.rows):,} of {facts.present:,} values of column {name!r} are dates such as "
        f"{example_of(facts.format)}; {_named(facts.misfits)}. Other values count as missing."
    )
    if facts.misfits.effect and column.role == "feature":
        finding += f" {facts.misfits.effect}"
    if column.role == "time":
        finding += " A split over time needs a date in every row."
    if facts.rival is not None:
        form, rows = facts.rival
        many = "One of these rows fits" if rows == 1 else f"{rows:,} of these rows fit"
        finding += (
            f" {many} {example_of(form)}: if the column has both orders, no other date of it is certain."
        )
    yield _offer(name, column, finding, "Read it as category", "category")
    if facts.rival is not None and len(facts.rows) < MAX_FORMATS:
        both = f"{facts.format} or {facts.rival[0]}"
        label = f"Read these rows as {_order_of(facts.rival[0], facts.format)}"
        yield _offer(name, column, finding, label, "date", both)


def _named(misfits: Misfits | None) -> str:
    """Return which rows have which other values."""
    if misfits is None:
        return "all others are missing"
    pairs = [f"row {row} has {text!r}" for row, text in zip(misfits.rows, misfits.examples, strict=True)]
    more = misfits.count - len(pairs)
    return ", ".join(pairs) + (f", and {more:,} more rows have others" if more else "")


def _short_years(name: str, column: ColumnSchema, facts: DateFacts, dates: Array) -> Iterator[Offer]:
    """Yield the offer to read years of two digits as spreadsheets do, if that gives other dates."""
    last = np.datetime64(str(SPREADSHEET_YEAR + 100), "Y")
    if not (dates >= last).any():
        return
    finding = (
        f"Column {name!r} has years of two digits. They are read as {FIRST_YEAR} to {FIRST_YEAR + 99}, so "
        f"its dates go up to {str(np.nanmax(dates))[:10]}."
    )
    label = f"Read them as {SPREADSHEET_YEAR} to {SPREADSHEET_YEAR + 99}"
    window = facts.format.replace("%y", f"%y{{{SPREADSHEET_YEAR}}}")
    yield _offer(name, column, finding, label, "date", window)


def _order_of(formats: str, other: str) -> str:
    """Return the order of the parts of a date in words, as day/month/year, by a format that `other` lacks."""
    known = formats_of(other)
    form = next((form for form in formats_of(formats) if form not in known), formats_of(formats)[-1])
    places = {
        word: min(place for part in parts if (place := form.find(part)) >= 0)
        for word, parts in (("day", DAY), ("month", MONTH), ("year", YEAR))
        if any(part in form for part in parts)
    }
    return "/".join(sorted(places, key=lambda word: places[word]))


def _day(text: str, formats: str) -> str:
    return str(read_dates([text], formats)[0])[:10]
