"""Places a directed graph's boxes in ranks from top to bottom, and routes its edges around them.

Sugiyama's method: ranks by the longest path, a lane through each rank that an edge passes, the order in
a rank by the neighbours' mean position.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

GAP, RANK_GAP = 20.0, 30.0
"""Distances between boxes of a rank, and between ranks."""
LANE = 8.0
"""Width of the lane of an edge that passes a rank."""
MAX_LANES = 4_000
"""Edges beyond these lanes are drawn straight."""
SWEEPS = 6


class Size(NamedTuple):
    """A box's size."""

    width: float
    height: float


class Place(NamedTuple):
    """A box's upper left corner."""

    x: float
    y: float


@dataclass(frozen=True)
class Layout:
    """The placed boxes, the `d` for each edge's path, and the total size."""

    places: list[Place]
    paths: list[str]
    width: float
    height: float


@dataclass
class _Item:
    """A box, or the lane for a box's edges through a rank."""

    rank: int
    size: Size
    above: list[int] = field(default_factory=list)
    below: list[int] = field(default_factory=list)
    centre: float = 0.0


def lay_out(sizes: Sequence[Size], edges: Iterable[tuple[int, int]]) -> Layout:
    """Place boxes and route edges.

    Args:
        sizes: the boxes' sizes, each after those with edges to it.
        edges: index pairs. One to an earlier box, as a shared layer has, is drawn beside the others.
    """
    forward, back = _directions(edges)
    graph = _Graph(sizes, forward)
    graph.place()
    tops, bottoms = graph.rank_edges()
    places = [
        Place(
            _round(item.centre - item.size.width / 2),
            _round((tops[item.rank] + bottoms[item.rank] - item.size.height) / 2),
        )
        for item in graph.items[: len(sizes)]
    ]
    paths = [graph.path(edge, tops, bottoms) for edge in forward]
    width, height = graph.width(), bottoms[-1] if bottoms else 0.0
    for number, (source, target) in enumerate(back, start=1):
        side = width + GAP * min(number, 10)
        paths.append(_side_path(places, sizes, source, target, side))
    return Layout(places, paths, width + GAP * min(len(back), 10), height)


def _directions(edges: Iterable[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    distinct = list(dict.fromkeys(edges))
    return [edge for edge in distinct if edge[0] < edge[1]], [e for e in distinct if e[0] >= e[1]]


def _side_path(places: list[Place], sizes: Sequence[Size], source: int, target: int, side: float) -> str:
    (x1, y1), (x2, y2) = places[source], places[target]
    start, end = x1 + sizes[source].width, x2 + sizes[target].width
    y1, y2 = y1 + 0.7 * sizes[source].height, y2 + 0.3 * sizes[target].height
    return f"M{_round(start)} {_round(y1)}H{_round(side)}V{_round(y2)}H{_round(end)}"


class _Graph:
    def __init__(self, sizes: Sequence[Size], edges: Sequence[tuple[int, int]]) -> None:
        ranks = _ranks(len(sizes), edges)
        self.items = [_Item(rank, size) for rank, size in zip(ranks, sizes, strict=True)]
        self.lanes: dict[tuple[int, int], int] = {}
        for source, target in edges:
            self._connect(source, target)
        rows: dict[int, list[int]] = defaultdict(list)
        for index, item in enumerate(self.items):
            rows[item.rank].append(index)
        self.rows = [rows[rank] for rank in sorted(rows)]

    def _connect(self, source: int, target: int) -> None:
        """Connect two boxes through the ranks between them. All long edges from a box share its lanes."""
        at = source
        for rank in range(self.items[source].rank + 1, self.items[target].rank):
            lane = self.lanes.get((source, rank))
            if lane is None:
                if len(self.lanes) >= MAX_LANES:
                    break
                lane = self.lanes[source, rank] = len(self.items)
                self.items.append(_Item(rank, Size(LANE, 0.0)))
                self._link(at, lane)
            at = lane
        self._link(at, target)

    def _link(self, upper: int, lower: int) -> None:
        self.items[upper].below.append(lower)
        self.items[lower].above.append(upper)

    def place(self) -> None:
        """Set the horizontal centre of every item."""
        for row in self.rows:
            self._spread(row, [0.0] * len(row))
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            for row in self.rows if down else reversed(self.rows):
                positions = {index: self._mean_of_neighbours(index, down=down) for index in row}
                # The last sweeps keep the order, and only straighten the edges.
                if sweep < SWEEPS - 2:
                    row.sort(key=lambda index: positions[index])
                self._spread(row, [positions[index] for index in row])
        left = min((item.centre - item.size.width / 2 for item in self.items), default=0.0)
        for item in self.items:
            item.centre -= left

    def _mean_of_neighbours(self, index: int, *, down: bool) -> float:
        item = self.items[index]
        near = item.above if down else item.below
        return sum(self.items[neighbour].centre for neighbour in near) / len(near) if near else item.centre

    def _spread(self, row: list[int], centres: list[float]) -> None:
        """Place a rank's items near the given centres, in order and without overlap."""
        apart = [(self.items[a].size.width + self.items[b].size.width) / 2 + GAP for a, b in pairwise(row)]
        from_left, from_right = centres[:], centres[:]
        for at, distance in enumerate(apart):
            from_left[at + 1] = max(from_left[at + 1], from_left[at] + distance)
        for at, distance in reversed(list(enumerate(apart))):
            from_right[at] = min(from_right[at], from_right[at + 1] - distance)
        # Both keep the distances, and so does their mean, which treats both sides alike.
        for index, left, right in zip(row, from_left, from_right, strict=True):
            self.items[index].centre = (left + right) / 2

    def width(self) -> float:
        """Return the width that holds all ranks."""
        return max((item.centre + item.size.width / 2 for item in self.items), default=0.0)

    def rank_edges(self) -> tuple[list[float], list[float]]:
        """Return each rank's upper and lower edge."""
        tops, bottoms, y = [], [], 0.0
        for row in self.rows:
            height = max(self.items[index].size.height for index in row)
            tops.append(y)
            bottoms.append(y + height)
            y += height + RANK_GAP
        return tops, bottoms

    def path(self, edge: tuple[int, int], tops: list[float], bottoms: list[float]) -> str:
        """Return an edge's path: straight through ranks, curved between them."""
        source, target = edge
        last = self.items[target].rank
        lanes = (self.lanes.get((source, rank)) for rank in range(self.items[source].rank + 1, last))
        stops = [source, *(lane for lane in lanes if lane is not None), target]
        begin, end = self.items[source], self.items[target]
        # Boxes are in the middle of their rank, which may be higher.
        lower = (tops[begin.rank] + bottoms[begin.rank] + begin.size.height) / 2
        upper = (tops[end.rank] + bottoms[end.rank] - end.size.height) / 2
        parts = [f"M{_round(begin.centre)} {_round(lower)}"]
        for above, below in pairwise(stops):
            a, b = self.items[above], self.items[below]
            parts.append(_curve(a.centre, max(bottoms[a.rank], lower), b.centre, tops[b.rank]))
            lower = bottoms[b.rank]
        # A path must not end with a line of no length, which would turn its arrow.
        if upper - tops[end.rank] > 0.1:
            parts.append(f"V{_round(upper)}")
        return "".join(parts)


def _curve(x1: float, y1: float, x2: float, y2: float) -> str:
    """Return a line down to `y1`, and a curve from there that begins and ends vertically."""
    if abs(x1 - x2) < 0.5:
        return f"V{_round(y2)}"
    middle = _round((y1 + y2) / 2)
    return f"V{_round(y1)}C{_round(x1)} {middle} {_round(x2)} {middle} {_round(x2)} {_round(y2)}"


def _ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the longest path's length to each box. Edges lead from lower to higher indices."""
    ranks = [0] * count
    for source, target in sorted(edges):
        ranks[target] = max(ranks[target], ranks[source] + 1)
    return ranks


def _round(value: float) -> float:
    return round(value, 1)
