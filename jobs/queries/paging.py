"""Pages by key: steady under inserts, and the last page costs what the first does."""

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import FieldError, ValidationError
from django.db.models import Model, Q, QuerySet

from jobs.errors import BadInput

DEFAULT_LIMIT = 50
MAX_LIMIT = 200


@dataclass(frozen=True)
class Page[T]:
    """Some rows of a list, how many there are in all, and the cursor of the rows after them."""

    items: list[T]
    total: int
    next: str | None


def page_of[M: Model](
    rows: QuerySet[M], *, cursor: str | None = None, limit: int = DEFAULT_LIMIT, order: str = "-pk"
) -> Page[M]:
    """Return the rows after `cursor`, ordered by the column `order` (never null) and then by id.

    Raises:
        BadInput: the cursor is none of ours.
    """
    limit = max(1, min(limit, MAX_LIMIT))
    down = order.startswith("-")
    column = order.lstrip("-")
    sign = "-" if down else ""
    ordered = rows.order_by(order) if column == "pk" else rows.order_by(order, f"{sign}pk")
    total = rows.count()
    if cursor:
        ordered = ordered.filter(_after(column, down, *_decode(cursor)))
    try:
        found = list(ordered[: limit + 1])
    except (FieldError, ValidationError, ValueError, TypeError) as error:
        raise BadInput("The cursor does not belong to this list.") from error
    more = len(found) > limit
    items = found[:limit]
    return Page(items, total, _encode(items[-1], column) if more else None)


def _after(column: str, down: bool, value: Any, pk: Any) -> Q:
    way = "lt" if down else "gt"
    if column == "pk":
        return Q(**{f"pk__{way}": pk})
    return Q(**{f"{column}__{way}": value}) | Q(**{column: value, f"pk__{way}": pk})


def _encode(row: Model, column: str) -> str:
    value = row.pk if column == "pk" else getattr(row, column)
    text = json.dumps([value, row.pk], default=str)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode(cursor: str) -> tuple[Any, Any]:
    try:
        value, pk = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, TypeError, binascii.Error) as error:
        raise BadInput("The cursor does not belong to this list.") from error
    return value, pk
