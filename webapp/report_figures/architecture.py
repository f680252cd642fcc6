"""Draws a model's graph: a box for each layer, repeated blocks and inner models collapsed into one.

The drawing has at most `MAX_BOXES` boxes, whatever the model.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jobs.messages.reports.base import ModelReport
from jobs.messages.reports.model_summary import GraphNode, ModelSummary
from jobs.spec.signature import Shape
from webapp.report_figures import layer_table
from webapp.report_figures.layered import Layout, Size, lay_out
from webapp.report_figures.repeats import Repeat, find_repeats
from webapp.template_context import Context

MAX_BOXES = 400
MAX_OPEN = 50
"""Maximum number of boxes that are expanded at once."""
SMALL = 24
"""Models of at most this many nodes are drawn without collapsing repeated blocks."""
BOX = Size(216.0, 64.0)
HEAD, PADDING = 30.0, 14.0
"""Height of the title of an expanded box, and the distance of its frame from its content."""
MARGIN = 8.0
MAX_TEXT = 100_000
"""Maximum number of characters of Keras' summary on a page."""
KEY = re.compile(r"[mr](0|[1-9][0-9]{0,5})")


class Box(NamedTuple):
    """A box, or an expanded box's frame.

    Attributes:
        frozen: whether its weights were fixed, while others were trained.
        kind: layer, operation, model, block, or rest for nodes that are left out.
        key: set for a box that can be expanded or collapsed.
        toggle: the `?open=` value after a click on it.
        title: a node's name, or the layer kinds in a block.
        number: how often a block is repeated, or how many nodes are left out.
        period: the number of nodes in one copy of a block, or inside a model.
    """

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str
    detail: str = ""
    shapes: tuple[Shape, ...] = ()
    parameters: int = 0
    bytes: int = 0
    output_bytes: int | None = None
    calls: int = 1
    frozen: bool = False
    number: int = 1
    period: int = 0
    key: str = ""
    toggle: str = ""
    is_open: bool = False


class Edge(NamedTuple):
    """A path from one box to another, and its coordinates' offset."""

    x: float
    y: float
    path: str


class Drawing(NamedTuple):
    """A model's frames, edges and boxes, to be drawn in this order, and their size."""

    frames: list[Box]
    edges: list[Edge]
    boxes: list[Box]
    width: float
    height: float
    nodes: int
    repeated: bool


def draw_model(summary: ModelSummary, requested: str | None) -> Drawing | None:
    """Return a model's drawing; None if its summary does not have the graph.

    Args:
        summary: the model's summary.
        requested: the expanded boxes' keys, separated by commas; None expands a whole small model.
    """
    if not summary.graph:
        return None
    nodes = summary.graph
    opened = _open_keys(nodes, requested)
    sketch = _Sketch(nodes, opened)
    part = sketch.scope(sketch.children[None], collapse=len(sketch.children[None]) > SMALL)
    return Drawing(
        [_move_box(box, MARGIN, MARGIN) for box in part.frames],
        [Edge(edge.x + MARGIN, edge.y + MARGIN, edge.path) for edge in part.edges],
        [_move_box(box, MARGIN, MARGIN) for box in part.boxes],
        round(part.size.width + 2 * MARGIN, 1),
        round(part.size.height + 2 * MARGIN, 1),
        len(nodes) + summary.graph_omitted,
        sketch.has_repeats,
    )


def _open_keys(nodes: Sequence[GraphNode], requested: str | None) -> frozenset[str]:
    if requested is None:
        small = len(nodes) <= SMALL
        return frozenset(f"m{at}" for at, node in enumerate(nodes) if node.is_model and small)
    return frozenset([key for key in requested.split(",") if KEY.fullmatch(key)][:MAX_OPEN])


@dataclass
class _Part:
    """A part with coordinates from its own corner."""

    size: Size
    frames: list[Box] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)


class _Sketch:
    def __init__(self, nodes: Sequence[GraphNode], opened: frozenset[str]) -> None:
        self.nodes, self.opened = nodes, opened
        self.children: dict[int | None, list[int]] = defaultdict(list)
        for at, node in enumerate(nodes):
            self.children[node.parent].append(at)
        self.likeness = _likeness(nodes, self.children)
        self.left = MAX_BOXES
        self.has_repeats = False

    def scope(self, members: Sequence[int], *, collapse: bool) -> _Part:
        """Return a drawing with the nodes in one model or repeated block."""
        units = find_repeats([self.likeness[at] for at in members]) if collapse else _singles(len(members))
        # Of the nodes that do not fit, one box shows the number.
        drawn = units[: max(self.left, 0)]
        self.left -= len(drawn)
        owner = {at: number for number, unit in enumerate(drawn) for at in _span(members, unit)}
        parts = [self._unit(_span(members, unit), unit) for unit in drawn]
        edges = [
            (owner[source], target)
            for at, target in owner.items()
            for source in self.nodes[at].inputs
            if source in owner and (owner[source] != target or source == at)
        ]
        rest = len(members) - sum(unit.items for unit in drawn)
        if rest:
            parts.append(_single_box(Box(0, 0, *BOX, "rest", "", number=rest)))
            edges += [(len(drawn) - 1, len(drawn))] if drawn else []
        return _compose_parts(parts, lay_out([part.size for part in parts], edges))

    def _unit(self, members: Sequence[int], unit: Repeat) -> _Part:
        if unit.copies > 1:
            self.has_repeats = True
            return self._block(members, unit)
        at = members[0]
        node = self.nodes[at]
        box = Box(
            0, 0, *BOX,
            "model" if node.is_model else "layer" if node.is_layer else "operation",
            node.name,
            node.kind,
            node.output_shapes,
            node.parameters,
            node.bytes,
            node.output_bytes,
            node.calls,
            node.frozen,
        )  # fmt: skip
        if not node.is_model or not self.children[at]:
            return _single_box(box)
        inside = self.children[at]
        box = self._toggled(box._replace(period=len(inside)), f"m{at}")
        return self._framed(box, inside, collapse=len(inside) > SMALL)

    def _block(self, members: Sequence[int], unit: Repeat) -> _Part:
        """Return the box for a repeated block."""
        nodes = [self.nodes[at] for at in members]
        outputs = [node.output_bytes for node in nodes]
        kinds = [node.kind for node in nodes[: unit.period]]
        box = Box(
            0, 0, *BOX,
            "block",
            " · ".join(kinds),
            kinds[0] if unit.period == 1 else "",
            nodes[-1].output_shapes,
            sum(node.parameters for node in nodes),
            sum(node.bytes for node in nodes),
            None if None in outputs else sum(filter(None, outputs)),
            frozen={node.frozen for node in nodes if node.parameters} == {True},
            number=unit.copies,
            period=unit.period,
        )  # fmt: skip
        return self._framed(self._toggled(box, f"r{members[0]}"), members, collapse=False)

    def _toggled(self, box: Box, key: str) -> Box:
        is_open = key in self.opened
        toggle = ",".join(sorted(self.opened ^ {key}))
        return box._replace(key=key, toggle=toggle, is_open=is_open)

    def _framed(self, box: Box, members: Sequence[int], *, collapse: bool) -> _Part:
        """Return the box alone, or with its content inside a frame if it is expanded."""
        if not box.is_open or self.left <= 0:
            return _single_box(box._replace(is_open=False))
        inner = self.scope(members, collapse=collapse)
        size = Size(max(inner.size.width + 2 * PADDING, BOX.width), inner.size.height + HEAD + PADDING)
        part = _Part(size, [box._replace(width=size.width, height=size.height)])
        _add(part, inner, (size.width - inner.size.width) / 2, HEAD)
        return part


def _likeness(nodes: Sequence[GraphNode], children: dict[int | None, list[int]]) -> list[int]:
    """Return a number for each node, which is equal for nodes with equal facts, inputs and inner nodes."""
    numbers: dict[Hashable, int] = {}
    likeness = [0] * len(nodes)
    # The nodes inside a model come after it, so they have their numbers before it.
    for at in range(len(nodes) - 1, -1, -1):
        node = nodes[at]
        facts = (
            node.kind, node.is_layer, node.output_shapes, node.parameters, node.bytes, node.calls,
            node.frozen,
            tuple(at - source for source in node.inputs),
            tuple(likeness[inner] for inner in children.get(at, ())),
        )  # fmt: skip
        likeness[at] = numbers.setdefault(facts, len(numbers))
    return likeness


def _singles(count: int) -> list[Repeat]:
    return [Repeat(at) for at in range(count)]


def _span(members: Sequence[int], unit: Repeat) -> Sequence[int]:
    return members[unit.start : unit.start + unit.items]


def _single_box(box: Box) -> _Part:
    return _Part(Size(box.width, box.height), boxes=[box])


def _compose_parts(parts: Iterable[_Part], layout: Layout) -> _Part:
    whole = _Part(Size(layout.width, layout.height), edges=[Edge(0.0, 0.0, path) for path in layout.paths])
    for part, place in zip(parts, layout.places, strict=True):
        _add(whole, part, *place)
    return whole


def _add(whole: _Part, part: _Part, x: float, y: float) -> None:
    whole.frames += [_move_box(box, x, y) for box in part.frames]
    whole.boxes += [_move_box(box, x, y) for box in part.boxes]
    whole.edges += [Edge(round(edge.x + x, 1), round(edge.y + y, 1), edge.path) for edge in part.edges]


def _move_box(box: Box, x: float, y: float) -> Box:
    return box._replace(x=round(box.x + x, 1), y=round(box.y + y, 1))


@dataclass(frozen=True)
class ArchitectureSection(Context):
    """A model's drawing and summary, for `components/architecture.html`."""

    summary: ModelSummary
    drawing: Drawing | None
    text: str


def architecture_contexts(report: ModelReport | None, query: Mapping[str, str]) -> tuple[Context, ...]:
    """Return the drawing, the text and the layer table; empty if the report is no summary.

    Args:
        report: a model's summary.
        query: `open` has the expanded boxes; `sort` and `cursor` belong to the table.
    """
    if not isinstance(report, ModelSummary):
        return ()
    text = report.text if len(report.text) <= MAX_TEXT else f"{report.text[:MAX_TEXT]}…"
    return (
        ArchitectureSection(report, draw_model(report, query.get("open")), text),
        layer_table.layers_context(report, query.get("sort", ""), query.get("cursor")),
    )
