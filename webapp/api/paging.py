"""Paginates the API's lists."""

from collections.abc import Callable, Mapping

from django.db.models import Model, QuerySet
from ninja import Schema
from pydantic import BaseModel, Field

from jobs.errors import BadInput
from jobs.queries.paging import DEFAULT_LIMIT, MAX_LIMIT, part_of
from jobs.spec.problems import Problem

NEWEST = {"created": "created", "id": "pk"}


class Paging(Schema):
    """The query parameters in every list."""

    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="The maximum number of items.")
    cursor: str | None = Field(None, max_length=4000, description="The `next` of the previous page.")
    sort: str | None = Field(None, max_length=40, description="A field name; `-` before it sorts descending.")


class Page[T](BaseModel):
    """One page of a list."""

    items: list[T]
    next: str | None = Field(description="Goes into `?cursor=` of the next request; null on the last page.")


def paginate[M: Model, T](
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
        page: the page's type.
        rows: the rows that the caller may see, filtered.
        paging: the caller's query parameters.
        show: converts a row to its form in the API.
        sorts: public name → column, which must not be null nor belong to a hidden relation.
        default: the order if the caller gives none.

    Raises:
        BadInput: the order is unknown, or the cursor belongs to another list.
    """
    return paginate_bulk(
        page, rows, paging, lambda part: [show(row) for row in part], sorts=sorts, default=default
    )


def paginate_bulk[M: Model, T](
    page: type[Page[T]],
    rows: QuerySet[M],
    paging: Paging,
    show: Callable[[list[M]], list[T]],
    *,
    sorts: Mapping[str, str] = NEWEST,
    default: str = "-id",
) -> Page[T]:
    """Return one page, where `show` converts all its rows in one call. See `paginate`."""
    order = _read_order(paging.sort or default, sorts)
    part = part_of(rows, cursor=paging.cursor, limit=paging.limit, order=order)
    # Without validation, since the items already have their types.
    return page.model_construct(items=show(part.items), next=part.next)


def _read_order(sort: str, sorts: Mapping[str, str]) -> str:
    name = sort.removeprefix("-")
    if name not in sorts:
        raise BadInput(
            f"sort={name!r} is unknown; choose one of {', '.join(sorted(sorts))}",
            [Problem("/sort", "unknown name")],
        )
    return f"-{sorts[name]}" if sort.startswith("-") else sorts[name]
