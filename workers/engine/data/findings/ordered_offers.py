"""Puts the offers of a profile in order, the most important first, and bounds each kind of them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jobs.spec.data.columns import ColumnType
from jobs.spec.data.offers import Offer
from jobs.spec.sections.data import Task
from workers.engine.arrays import Array
from workers.engine.data.findings.doubts import (
    MOST_OFFERS,
    offers_of_booleans,
    offers_of_digits,
    offers_of_roles,
    offers_of_writings,
)
from workers.engine.data.findings.row_order import offers_of_row_order
from workers.engine.data.schema import Schema

MOST_OFFERS_OF_ALL = 200
"""A profile has a limited size, and no person reads more."""
_NO_WORDS: tuple[ColumnType, ...] = ("number", "integer", "date")


class OrderedOffers(NamedTuple):
    """The offers of a profile, and a sentence if more columns could have one."""

    offers: tuple[Offer, ...]
    sentences: tuple[str, ...]


def order_offers(schema: Schema, dates: Sequence[Offer], y: Array, task: Task) -> OrderedOffers:
    """Return the offers for a table: those on the target first, then those on roles, which choose the input.

    Args:
        schema: the table with its columns, and the offers to read these in another way.
        dates: the offers on single dates and numbers.
        y: the encoded target.
        task: the kind of prediction.
    """
    in_order = offers_of_row_order(schema, y, task)

    def is_other(offer: Offer) -> bool:
        return offer.change.name != schema.target

    # The target is in the first offers on reading, also if it is the last column.
    reading = sorted(schema.offers, key=is_other)
    named = {offer.change.name for offer in in_order} | _read_again((*reading, *dates), schema)
    every = (
        *_of_first_columns(in_order),
        *(offer for offer in offers_of_roles(schema.columns) if offer.change.name not in named),
        *_of_first_columns(reading),
        *dates,
        *offers_of_booleans(schema),
        *offers_of_writings(schema),
        *offers_of_digits(schema),
    )
    offers = tuple(sorted(every, key=is_other)[:MOST_OFFERS_OF_ALL])
    found = {offer.change.name for offer in (*in_order, *reading, *dates)}
    more = len(found - {offer.change.name for offer in offers})
    if not more:
        return OrderedOffers(offers, ())
    columns = "column" if more == 1 else "columns"
    return OrderedOffers(
        offers,
        (
            f"{more:,} more {columns} could be used or read in another way; the table of columns shows how "
            "each is read.",
        ),
    )


def _read_again(offers: Iterable[Offer], schema: Schema) -> set[str]:
    """Return the columns that an offer reads as numbers or dates: then their role is decided again."""
    return {
        offer.change.name
        for offer in offers
        if offer.change.type in _NO_WORDS and offer.change.type != schema.columns[offer.change.name].type
    }


def _of_first_columns(offers: Sequence[Offer]) -> list[Offer]:
    """Return the offers for the first columns that have some."""
    first = [*dict.fromkeys(offer.change.name for offer in offers)][:MOST_OFFERS]
    chosen = {*first}
    return [offer for offer in offers if offer.change.name in chosen]
