"""Pages by key: steady under inserts, and the last page costs what the first does."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.signing import BadSignature, Signer
from django.db.models import Model, Q, QuerySet

from jobs.contracts.problems import Problem
from jobs.errors import BadInput

DEFAULT_LIMIT = 50
MAX_LIMIT = 200


@dataclass(frozen=True)
class Part[T]:
    """Some rows of a list, and the cursor of the rows after them: None where the list ends."""

    items: list[T]
    next: str | None


@dataclass(frozen=True)
class Page[T](Part[T]):
    """The same with how many rows there are in all."""

    total: int


def part_of[M: Model](
    rows: QuerySet[M], *, cursor: str | None = None, limit: int = DEFAULT_LIMIT, order: str = "-pk"
) -> Part[M]:
    """Return the rows after `cursor`.

    Args:
        rows: the list, in whatever order.
        cursor: `next` of the part before; None begins.
        limit: how many rows at most.
        order: the column to go by, never null, then by id; `-` before it turns both round.

    Raises:
        BadInput: the cursor was not made for such a list in this order.
    """
    sign = "-" if order.startswith("-") else ""
    ordered = rows.order_by(*dict.fromkeys((order, f"{sign}pk")))
    if cursor is not None:
        value, key = _decode(cursor, rows.model, order)
        ordered = ordered.filter(_after(value, key, order))
    found = list(ordered[: limit + 1])
    items = found[:limit]
    return Part(items, _encode(items[-1], order) if len(found) > limit else None)


def page_of[M: Model](
    rows: QuerySet[M], *, cursor: str | None = None, limit: int = DEFAULT_LIMIT, order: str = "-pk"
) -> Page[M]:
    """Return what `part_of` does and count the whole list, for those who show the count.

    Raises:
        BadInput: the cursor was not made for such a list in this order.
    """
    part = part_of(rows, cursor=cursor, limit=limit, order=order)
    return Page(part.items, part.next, rows.count())


def _after(value: Any, key: Any, order: str) -> Q:
    column, way = order.removeprefix("-"), "lt" if order.startswith("-") else "gt"
    # The first condition is what an index on the column starts from; a bare "or" would read the list's head.
    return Q(**{f"{column}__{way}e": value}) & (Q(**{f"{column}__{way}": value}) | Q(**{f"pk__{way}": key}))


def _signer(model: type[Model], order: str) -> Signer:
    """Sign for one kind of row and one order. What verifies is ours, so no column refuses its value."""
    return Signer(salt=f"cursor of {model._meta.label_lower} by {order}")


def _encode(row: Model, order: str) -> str:
    value: Any = row
    for part in order.removeprefix("-").split("__"):
        value = getattr(value, part)
    if isinstance(value, datetime):
        value = value.isoformat()
    return _signer(type(row), order).sign_object([value, row.pk])


def _decode(cursor: str, model: type[Model], order: str) -> tuple[Any, Any]:
    try:
        value, key = _signer(model, order).unsign_object(cursor)
    except (BadSignature, UnicodeError) as error:
        message = "The cursor was not made for this list in this order; begin again without one."
        raise BadInput(message, [Problem("/cursor", "not of this list")]) from error
    return value, key
