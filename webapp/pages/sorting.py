"""Headers of sortable columns."""

from collections.abc import Collection
from typing import NamedTuple


class Header(NamedTuple):
    """A sortable column: its label, the order that a click sets, and the present `aria-sort`."""

    label: str
    sort: str
    aria: str


def column_header(name: str, label: str, sort: str, *, ascending: Collection[str] = ("name",)) -> Header:
    """Return a column's header. A click on the column that sorts now reverses the order.

    Args:
        name: the column's name in the address.
        label: its label.
        sort: the present order, with `-` for descending.
        ascending: the columns that a first click sorts in ascending order.
    """
    if sort.removeprefix("-") != name:
        return Header(label, name if name in ascending else f"-{name}", "none")
    is_down = sort.startswith("-")
    return Header(label, name if is_down else f"-{name}", "descending" if is_down else "ascending")
