"""Lists cut by key: a page stays right while rows come and go, the last one costs what the first does."""

import base64
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from ninja import Schema
from pydantic import Field

from jobs.errors import BadInput
from jobs.spec.problems import Problem

NEWEST = {"created": "created", "id": "pk"}


class Paging(Schema):
    """`?limit=&cursor=&sort=` of every list; `sort=-name` turns the order round."""

    limit: int = Field(50, ge=1, le=200)
    cursor: str | None = Field(None, max_length=2000)
    sort: str | None = Field(None, max_length=40)


class Page[T](Schema):
    """One page of a list; `next` goes into `?cursor=`."""

    items: list[T]
    next: str | None = None


def cut[M: Model, T](
    rows: QuerySet[M],
    paging: Paging,
    show: Callable[[M], T],
    *,
    sorts: Mapping[str, str] = NEWEST,
    default: str = "-id",
) -> Page[T]:
    """Return one page of `rows`.

    Args:
        rows: what the caller may see, filtered.
        paging: what the caller asked for.
        show: turns a row into what is answered.
        sorts: public name → field; never nullable, never through a relation the caller may not see.
        default: the order where none is asked for.

    Raises:
        BadInput: the order is not offered, or the cursor is not of this list.
    """
    order = paging.sort or default
    name, backwards = order.removeprefix("-"), order.startswith("-")
    if name not in sorts:
        raise BadInput(
            f"sort={name!r}: choose of {', '.join(sorted(sorts))}", [Problem("/sort", "not offered")]
        )
    field = sorts[name]
    sign = "-" if backwards else ""
    ordered = rows.order_by(*dict.fromkeys((f"{sign}{field}", f"{sign}pk")))
    if paging.cursor is not None:
        ordered = _after(ordered, paging.cursor, order, field, "lt" if backwards else "gt")
    found = list(ordered[: paging.limit + 1])
    here = found[: paging.limit]
    return Page(
        items=[show(row) for row in here],
        next=_cursor(here[-1], order, field) if len(found) > paging.limit else None,
    )


def _cursor(row: Model, order: str, field: str) -> str:
    value: Any = row
    for part in field.split("__"):
        value = getattr(value, part)
    if isinstance(value, datetime):
        value = value.isoformat()
    return base64.urlsafe_b64encode(json.dumps([order, value, row.pk]).encode()).decode().rstrip("=")


def _after[M: Model](rows: QuerySet[M], cursor: str, order: str, field: str, side: str) -> QuerySet[M]:
    try:
        made_for, value, key = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if made_for != order or isinstance(value, dict | list) or isinstance(key, dict | list):
            raise ValueError("made for another list")
        return rows.filter(Q(**{f"{field}__{side}": value}) | Q(**{field: value, f"pk__{side}": key}))
    except (ValueError, TypeError, ValidationError, RecursionError) as error:
        raise BadInput("This cursor is not one of this list.", [Problem("/cursor", str(error))]) from error
