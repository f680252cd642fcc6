"""Describes columns whose dates have several formats, words behind them, or time zones."""

from collections.abc import Iterator

from jobs.spec.data.dates.formats import example_of, formats_of
from workers.engine.data.dates.facts import DateFacts
from workers.engine.data.dates.texts import MAX_EXAMPLE_CHARACTERS
from workers.engine.data.schema import ColumnSchema
from workers.features.date_texts import read_dates


def about_words(name: str, facts: DateFacts) -> str:
    """Return the sentence on a column of dates with a word behind them."""
    named, example = " and ".join(map(repr, facts.words)), facts.example[:MAX_EXAMPLE_CHARACTERS]
    if ":" in example:
        gives = "gives" if len(facts.words) == 1 else "give"
        why = f"{named} {gives} no single offset from UTC"
    else:
        why = f"{named} behind them {'is' if len(facts.words) == 1 else 'are'} not understood"
    return f"Column {name!r} has dates such as {example!r}. {why}, so they are read as words."


def describe_formats(name: str, column: ColumnSchema, facts: DateFacts) -> Iterator[str]:
    """Yield the sentence on a column that has several formats, or several zones."""
    if facts.words and not facts.format and column.role != "target":
        yield (
            f"{about_words(name, facts)} To read them as dates, write them in UTC or with their offset, as "
            "in 2021-12-24 15:05+01:00."
        )
    if column.type == "date" and len(facts.rows) > 1:
        parts = [
            f"{rows:,} rows as {example_of(form)}"
            for form, rows in zip(formats_of(facts.format), facts.rows, strict=True)
        ]
        yield (
            f"Column {name!r} has dates in {len(parts)} formats: {', '.join(parts)}. Each is read by its "
            "own; check that they come from sources with the same meaning."
        )


def describe_zones(name: str, column: ColumnSchema, facts: DateFacts) -> Iterator[str]:
    """Yield the sentences on times that have a time zone."""
    if column.type == "date" and facts.without_zone:
        is_one = facts.without_zone == 1
        yield (
            f"Column {name!r}: {facts.without_zone:,} of {facts.times:,} times "
            f"{'has no time zone and is' if is_one else 'have no time zone and are'} read as UTC, while the "
            "others have one."
        )
    if column.type == "date" and facts.offset:
        moment = str(read_dates([facts.offset], facts.format)[0])[:16].replace("T", " ")
        yield (
            f"Column {name!r} has times with an offset from UTC, and all of its dates are in UTC: "
            f"{facts.offset!r} is {moment}. In a request, a time without an offset is one in UTC."
        )
