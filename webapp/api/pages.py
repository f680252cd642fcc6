"""How lists go over HTTP: what may be asked of them, and what a page of one looks like."""

from collections.abc import Callable, Mapping

from django.db.models import Model, QuerySet
from ninja import Schema
from pydantic import Field

from jobs.contracts.problems import Problem
from jobs.errors import BadInput
from jobs.queries.paging import DEFAULT_LIMIT, MAX_LIMIT, part_of

NEWEST = {"created": "created", "id": "pk"}


class Paging(Schema):
    """`?limit=&cursor=&sort=` of every list; `sort=-name` turns the order round."""

    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)
    cursor: str | None = Field(None, max_length=4000)
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
        sorts: public name → column; never nullable, never through a relation the caller may not see.
        default: the order where none is asked for.

    Raises:
        BadInput: the order is not offered, or the cursor is not of this list.
    """
    order = _order(paging.sort or default, sorts)
    part = part_of(rows, cursor=paging.cursor, limit=paging.limit, order=order)
    return Page(items=[show(row) for row in part.items], next=part.next)


def _order(asked: str, sorts: Mapping[str, str]) -> str:
    name = asked.removeprefix("-")
    if name not in sorts:
        raise BadInput(
            f"sort={name!r}: choose of {', '.join(sorted(sorts))}", [Problem("/sort", "not offered")]
        )
    return f"-{sorts[name]}" if asked.startswith("-") else sorts[name]
