"""Prepares the table with a model's layers: sorted by any column, and in pages."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from jobs.messages.reports.model_summary import GraphNode, ModelSummary
from webapp.template_context import Context
from webapp.whole_numbers import read_whole

PAGE = 100


class Column(NamedTuple):
    """A column: its name in `?sort=`, its label, whether it holds numbers, and the value to sort by."""

    name: str
    label: str
    is_number: bool
    value: Callable[[GraphNode], Any]


class Header(NamedTuple):
    """A column's head: the order that a click sets, and the present `aria-sort`."""

    label: str
    is_number: bool
    sort: str
    aria: str


class Row(NamedTuple):
    """A node, and the names of the nodes before it."""

    node: GraphNode
    inputs: list[str]


class Page(NamedTuple):
    """Some rows, with the cursor for the next ones, in the shape that `{% pager %}` shows."""

    items: list[Row]
    total: int
    next: str | None


def _elements(node: GraphNode) -> float:
    """Return the number of values of the first output; a size that varies counts as 1."""
    product = 1.0
    for size in node.output_shapes[0] if node.output_shapes else ():
        product *= size or 1
    return product


COLUMNS = (
    Column("layer", "Layer", False, lambda node: node.path),
    Column("kind", "Kind", False, lambda node: node.kind),
    Column("output", "Output", False, _elements),
    Column("parameters", "Parameters", True, lambda node: node.parameters),
    Column("memory", "Weights", True, lambda node: node.bytes),
    Column(
        "row", "Outputs of a row", True, lambda node: -1 if node.output_bytes is None else node.output_bytes
    ),
)
SORTS = tuple(sign + column.name for column in COLUMNS for sign in ("", "-"))


@dataclass(frozen=True)
class LayersSection(Context):
    """The heads in the layer table, and one page."""

    headers: list[Header]
    layers: Page


def layers_context(summary: ModelSummary, sort: str, cursor: str | None) -> LayersSection:
    """Return a page. An unknown order is the graph's order; a wrong cursor is the start."""
    nodes = summary.graph or ()
    rows = list(nodes)
    sort = sort if sort in SORTS else ""
    for column in COLUMNS:
        if sort.removeprefix("-") == column.name:
            rows.sort(key=column.value, reverse=sort.startswith("-"))
    start = read_whole(cursor or "", digits=6) or 0
    end = start + PAGE
    items = [Row(node, [nodes[at].name for at in node.inputs]) for node in rows[start:end]]
    page = Page(items, len(rows), str(end) if end < len(rows) else None)
    return LayersSection([_header(column, sort) for column in COLUMNS], page)


def _header(column: Column, sort: str) -> Header:
    """Return a column's head. Numbers are sorted from the largest first."""
    if sort.removeprefix("-") != column.name:
        first = f"-{column.name}" if column.is_number or column.name == "output" else column.name
        return Header(column.label, column.is_number, first, "none")
    is_down = sort.startswith("-")
    other = column.name if is_down else f"-{column.name}"
    return Header(column.label, column.is_number, other, "descending" if is_down else "ascending")
