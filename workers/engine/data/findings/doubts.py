"""Offers the other choice for columns whose role, type or values follow from a guess."""

from collections.abc import Mapping
from itertools import islice

from jobs.spec.data.boolean_words import BOOLEAN_WORDS, boolean_of
from jobs.spec.data.columns import NUMERIC, ColumnRequest
from jobs.spec.data.gap_words import is_gap, named_words
from jobs.spec.data.offers import Offer
from workers.engine.data.findings.writings import counts_of, find_groups, offer_to_divide, offer_to_merge
from workers.engine.data.labels import is_list_column
from workers.engine.data.reading.column_texts import SHOWN_CHARACTERS
from workers.engine.data.reading.exact_numbers import LARGEST_INTEGER, MAX_DIGITS, inexact_number
from workers.engine.data.schema import ColumnSchema, Schema
from workers.engine.data.spilled import words

_BOTH = {True, False}
MOST_OFFERS = 30
"""Offers of one kind for the columns of a table."""


def offers_of_roles(columns: Mapping[str, ColumnSchema]) -> tuple[Offer, ...]:
    """Return an offer for each column that is left out as an identifier, or may be one."""
    chosen = [(name, column) for name, column in columns.items() if column.judgement.reason is not None]
    doubtful = [(name, column) for name, column in columns.items() if column.judgement.doubt is not None]
    return (
        *(_feature_offer(name, column) for name, column in chosen[:MOST_OFFERS]),
        *(_id_offer(name, column) for name, column in doubtful[:MOST_OFFERS]),
    )


def _feature_offer(name: str, column: ColumnSchema) -> Offer:
    return Offer(
        finding=f"Column {name!r} was taken for an identifier: {column.judgement.reason}. If its values "
        "describe the rows, use it as a feature.",
        label=f"Use {name} as a feature",
        change=ColumnRequest(name=name, role="feature"),
    )


def _id_offer(name: str, column: ColumnSchema) -> Offer:
    if column.judgement.is_group:
        return Offer(
            finding=f"Column {name!r} is a feature, but {column.judgement.doubt}. If several rows are "
            "about the same person or thing, give it the role group: these rows stay in one part of a split.",
            label=f"Use {name} as the group",
            change=ColumnRequest(name=name, role="group"),
        )
    return Offer(
        finding=f"Column {name!r} is a feature, but {column.judgement.doubt}. If it identifies rows, leave "
        "it out.",
        label=f"Use {name} as an id",
        change=ColumnRequest(name=name, role="id"),
    )


def offers_of_writings(schema: Schema) -> tuple[Offer, ...]:
    """Return an offer for each column whose categories or labels differ in their writing only."""
    offers = (_writing_offer(name, schema) for name in schema.columns)
    return tuple(islice((offer for offer in offers if offer is not None), MOST_OFFERS))


def _writing_offer(name: str, schema: Schema) -> Offer | None:
    column, columns = schema.columns[name], schema.table.columns
    if column.role not in ("feature", "target", "group") or column.merge_labels is False:
        return None
    if column.merge_labels:
        return offer_to_divide(name, column.merged) if column.merged else None
    if not (groups := find_groups(columns, name, column.type)):
        return None
    values = columns[name]
    searched = None if is_list_column(values) else values
    return offer_to_merge(name, groups, searched, is_target=column.role == "target")


def offers_of_booleans(schema: Schema) -> tuple[Offer, ...]:
    """Return an offer for each category that has several words for true and false, such as Y and Yes."""
    offers = (_boolean_offer(name, schema) for name in schema.columns)
    return tuple(islice((offer for offer in offers if offer is not None), MOST_OFFERS))


def _boolean_offer(name: str, schema: Schema) -> Offer | None:
    column, columns = schema.columns[name], schema.table.columns
    if column.type != "category" or column.role not in ("feature", "target", "group"):
        return None
    counts = counts_of(columns, name)
    texts = [text for text in counts if text and not is_gap(text, "booleans", column.gap_words)]
    truths = {text: boolean_of(text) for text in texts[: len(BOOLEAN_WORDS)]}
    if len(texts) <= len(_BOTH) or len(texts) > len(truths) or {*truths.values()} != _BOTH:
        return None
    true, false = (
        named_words([text for text in texts if truths[text] is value], counts) for value in (True, False)
    )
    return Offer(
        finding=f"{'Target' if column.role == 'target' else 'Column'} {name!r} has several words for true "
        f"({true} rows) and false ({false} rows), which are read as categories.",
        label=f"Read {name} as true and false",
        change=ColumnRequest(name=name, type="boolean"),
    )


def offers_of_digits(schema: Schema) -> tuple[Offer, ...]:
    """Return an offer for each column whose whole numbers stayed texts, because 64 bits do not hold them."""
    offers = (_digits_offer(name, schema) for name in schema.columns)
    return tuple(islice((offer for offer in offers if offer is not None), MOST_OFFERS))


def _digits_offer(name: str, schema: Schema) -> Offer | None:
    column, columns = schema.columns[name], schema.table.columns
    if column.type != "category" or column.has_chosen_type:
        return None
    distinct = words(columns, name)
    if (example := inexact_number(columns[name] if distinct is None else distinct.values)) is None:
        return None
    shown = example if len(example) <= SHOWN_CHARACTERS else f"{example[:SHOWN_CHARACTERS]}…"
    # Beside gaps, numbers are floats, and int64 holds more digits than these.
    held = "no column of numbers of 64 bits holds exactly"
    if len(example) <= MAX_DIGITS and abs(int(example)) <= LARGEST_INTEGER:
        held = "a column of numbers with gaps or other texts does not hold exactly"
    return Offer(
        finding=f"Column {name!r} has whole numbers such as {shown}, which {held}, so they are kept as "
        "texts. If they are measured, read them as numbers, which keep "
        "about 16 digits.",
        label=f"Read {name} as numbers",
        change=ColumnRequest(name=name, type="number"),
    )


def sentences_on_decimals(schema: Schema) -> list[str]:
    """Return a sentence for each column in which different decimals became the same number."""
    return [
        f"Column {name!r} has decimals with more digits than a number of 64 bits holds: {pair.first} and "
        f"{pair.second} are the same number."
        for name, pair in islice(schema.table.equal_decimals.items(), MOST_OFFERS)
        if name in schema.columns and schema.columns[name].type in NUMERIC
    ]
