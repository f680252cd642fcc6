"""Pagination of lists over HTTP."""

from collections.abc import Callable, Mapping

from django.db.models import Model, QuerySet
from ninja import Schema
from pydantic import BaseModel, Field

from jobs.contracts.problems import Problem
from jobs.errors import BadInput
from jobs.queries.paging import DEFAULT_LIMIT, MAX_LIMIT, part_of

NEWEST = {"created": "created", "id": "pk"}


class Paging(Schema):
    """The query parameters of every list."""

    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="The maximum number of items.")
    cursor: str | None = Field(None, max_length=4000, description="The `next` of the previous page.")
    sort: str | None = Field(None, max_length=40, description="A field name; `-` before it sorts descending.")


class Page[T](BaseModel):
    """One page of a list."""

    items: list[T]
    next: str | None = Field(description="Goes into `?cursor=` of the next request; null on the last page.")


def cut[M: Model, T](
    page: type[Page[T]],
    rows: QuerySet[M],
    paging: Paging,
    show: Callable[[M], T],
    *,
    sorts: Mapping[str, str] = NEWEST,
    default: str = "-id",
) -> Page[T]:
    """Return one page of `rows`.

    Args:
        page: the type of the page.
        rows: the rows that the caller may see, filtered.
        paging: the caller's query parameters.
        show: turns a row into an answer.
        sorts: public name → column; never nullable, never through a relation the caller may not see.
        default: the order if none is given.

    Raises:
        BadInput: the order is unknown, or the cursor belongs to another list.
    """
    return cut_all(
        page, rows, paging, lambda found: [show(row) for row in found], sorts=sorts, default=default
    )


def cut_all[M: Model, T](
    page: type[Page[T]],
    rows: QuerySet[M],
    paging: Paging,
    show: Callable[[list[M]], list[T]],
    *,
    sorts: Mapping[str, str] = NEWEST,
    default: str = "-id",
) -> Page[T]:
    """Return the same page where `show` turns all rows into answers at once."""
    order = _order(paging.sort or default, sorts)
    part = part_of(rows, cursor=paging.cursor, limit=paging.limit, order=order)
    return page.model_construct(items=show(part.items), next=part.next)


def _order(asked: str, sorts: Mapping[str, str]) -> str:
    name = asked.removeprefix("-")
    if name not in sorts:
        raise BadInput(
            f"sort={name!r}: choose one of {', '.join(sorted(sorts))}", [Problem("/sort", "not offered")]
        )
    return f"-{sorts[name]}" if asked.startswith("-") else sorts[name]
