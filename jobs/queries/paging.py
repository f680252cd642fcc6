"""Paginates by key, so that inserts do not shift pages and the last page costs no more than the first."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.signing import BadSignature, Signer
from django.db.models import Model, Q, QuerySet

from jobs.errors import BadInput
from jobs.spec.problems import Problem

DEFAULT_LIMIT = 50
MAX_LIMIT = 200


@dataclass(frozen=True)
class Part[T]:
    """Some rows in a list, and the next rows' cursor; None if the list ends here."""

    items: list[T]
    next: str | None


@dataclass(frozen=True)
class Page[T](Part[T]):
    """A part of a list with the total count."""

    total: int


def part_of[M: Model](
    rows: QuerySet[M], *, cursor: str | None = None, limit: int = DEFAULT_LIMIT, order: str = "-pk"
) -> Part[M]:
    """Return the rows after `cursor`.

    Args:
        rows: the list; its order is ignored.
        cursor: `next` from the previous part; None for the first part.
        limit: the most rows to return.
        order: the column to sort by, which must not be null; then by id. A `-` before it reverses both.

    Raises:
        BadInput: the cursor belongs to another list or order.
    """
    sign = "-" if order.startswith("-") else ""
    # The id makes the order unique; it is named once if it is the order.
    ordered = rows.order_by(*dict.fromkeys((order, f"{sign}pk")))
    if cursor is not None:
        value, key = _decode_cursor(cursor, rows.model, order)
        ordered = ordered.filter(_after_row(value, key, order))
    # One row more than needed shows whether there is a next part.
    page = list(ordered[: limit + 1])
    items = page[:limit]
    return Part(items, _encode_cursor(items[-1], order) if len(page) > limit else None)


def page_of[M: Model](
    rows: QuerySet[M], *, cursor: str | None = None, limit: int = DEFAULT_LIMIT, order: str = "-pk"
) -> Page[M]:
    """Return the rows after `cursor` and the total count. See `part_of`.

    Raises:
        BadInput: the cursor belongs to another list or order.
    """
    part = part_of(rows, cursor=cursor, limit=limit, order=order)
    return Page(part.items, part.next, rows.count())


def _after_row(value: Any, key: Any, order: str) -> Q:
    """Return the condition for the rows after the row with these values."""
    column, way = order.removeprefix("-"), "lt" if order.startswith("-") else "gt"
    # The first condition lets the database use an index; with `or` alone it would read all earlier rows.
    return Q(**{f"{column}__{way}e": value}) & (Q(**{f"{column}__{way}": value}) | Q(**{f"pk__{way}": key}))


def _cursor_signer(model: type[Model], order: str) -> Signer:
    # The values of a signed cursor come from a row, so they fit the columns. The salt makes cursors of other
    # lists and orders invalid.
    return Signer(salt=f"cursor of {model._meta.label_lower} by {order}")


def _encode_cursor(row: Model, order: str) -> str:
    value: Any = row
    for part in order.removeprefix("-").split("__"):
        value = getattr(value, part)
    if isinstance(value, datetime):
        value = value.isoformat()
    return _cursor_signer(type(row), order).sign_object([value, row.pk])


def _decode_cursor(cursor: str, model: type[Model], order: str) -> tuple[Any, Any]:
    try:
        value, key = _cursor_signer(model, order).unsign_object(cursor)
    except (BadSignature, UnicodeError) as error:
        message = "The cursor belongs to another list or order. Start again without a cursor."
        raise BadInput(message, [Problem("/cursor", "belongs to another list or order")]) from error
    return value, key
