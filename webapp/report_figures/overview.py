"""Prepares a version's overview: missing values, relations between columns, parts in the split."""

from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from jobs.messages.overview import (
    ColumnGaps,
    Correlations,
    Information,
    Overview,
    PartRows,
    Repeats,
    Section,
    SplitOverview,
)
from jobs.spec.data.profile import Profile
from webapp.report_figures.geometry import bar_lengths
from webapp.template_context import Context

CELL, LABELS, TOP = 24, 150, 20
"""Sizes of the picture of the correlations: of a cell, and the room for the names and the numbers."""
MOST_CHARACTERS = 22
LIGHTEST = 0.25
"""The opacity of a block with a single missing value, which must be visible."""
PAIRS = 20
"""The table of correlations lists this many pairs."""
SECTION_TITLES: dict[Section, str] = {
    "gaps": "Missing values",
    "information": "Information about the target",
    "correlations": "Correlations",
    "parts": "Target in each part",
    "repeats": "Rows that training knows",
}
OF_TABLES: tuple[Section, ...] = ("information", "correlations")
"""Sections that images and arrays do not have."""
PART_NAMES = {"train": "Training", "validation": "Validation", "test": "Test"}


class Cell(NamedTuple):
    """A picture's cell, with the text that explains it."""

    x: float
    y: float
    opacity: float
    is_negative: bool
    title: str


class Label(NamedTuple):
    """A column's name beside its row, and its number above."""

    number: int
    name: str
    short_name: str
    y: float
    x: float


class GapRow(NamedTuple):
    """A column in the missing-value map: each block's opacity, and where the gaps are in words."""

    column: str
    missing: int
    blocks: tuple[tuple[int, float], ...]
    summary: str


class ClassRow(NamedTuple):
    """A class with its rows and its share in each part."""

    label: str
    cells: tuple[tuple[int, float], ...]


class CorrelationFigure(NamedTuple):
    """The correlations as a picture, and the strongest ones as a table."""

    correlations: Correlations
    cell: int
    labels: list[Label]
    cells: list[Cell]
    width: int
    height: int
    pairs: list[tuple[str, str, float]]


class PartsFigure(NamedTuple):
    """The target in each part, and the repeated rows. It is `parts` in `data/parts.html`."""

    overview: SplitOverview
    part_names: list[str]
    classes: list[ClassRow]
    numbers: list[tuple[str, PartRows]]
    repeats: list[tuple[str, Repeats]]


@dataclass(frozen=True)
class OverviewSection(Context):
    """A version's overview, and the parts in the default split for new experiments."""

    overview: Overview
    gaps: list[GapRow] | None
    gap_blocks: int
    correlations: CorrelationFigure | None
    information: list[tuple[Information, float]]
    default_parts: PartsFigure


def overview_context(overview: Overview) -> OverviewSection:
    """Return the variables for `data/overview.html`."""
    gaps, correlations = overview.gaps, overview.correlations
    return OverviewSection(
        overview=overview,
        gaps=None if gaps is None else [_gap_row(column) for column in gaps.columns],
        gap_blocks=0 if gaps is None else len(gaps.columns[0].percent),
        correlations=None if correlations is None else _correlation_figure(correlations),
        information=_bars(overview.information),
        default_parts=parts_figure(overview),
    )


def pending_titles(overview: Overview | None, profile: Profile, *, is_preparing: bool) -> list[str]:
    """Return the titles for sections that a worker still computes.

    Args:
        overview: the sections that are computed; None before the first one.
        profile: the same version's profile.
        is_preparing: whether a worker computes the sections now.
    """
    if not is_preparing:
        return []
    if overview is not None:
        return [SECTION_TITLES[section] for section in overview.pending]
    is_table = profile.has_pipeline and profile.images is None
    return [title for section, title in SECTION_TITLES.items() if is_table or section not in OF_TABLES]


def parts_figure(overview: SplitOverview) -> PartsFigure:
    """Prepare a split's parts."""
    return PartsFigure(
        overview=overview,
        part_names=[PART_NAMES[part.part] for part in overview.parts],
        classes=_class_rows(overview),
        numbers=[(PART_NAMES[part.part], part) for part in overview.parts if part.mean is not None],
        repeats=[(PART_NAMES[repeats.part], repeats) for repeats in overview.repeats],
    )


def _gap_row(gaps: ColumnGaps) -> GapRow:
    blocks = tuple(
        (place, round(LIGHTEST + (1 - LIGHTEST) * percent / 100, 2))
        for place, percent in enumerate(gaps.percent)
        if percent
    )
    places = [place for place, _ in blocks]
    first, last, count = places[0] + 1, places[-1] + 1, len(gaps.percent)
    where = f"in block {first}" if first == last else f"in {len(places)} of {count} blocks, {first} to {last}"
    return GapRow(gaps.column, gaps.missing, blocks, where)


def _correlation_figure(correlations: Correlations) -> CorrelationFigure:
    names = correlations.columns
    size = len(names)
    labels = [
        Label(i + 1, name, _shorten(name), TOP + (i + 0.5) * CELL, LABELS + (i + 0.5) * CELL)
        for i, name in enumerate(names)
    ]
    cells = [
        Cell(
            LABELS + j * CELL,
            TOP + i * CELL,
            round(abs(r or 0.0), 2),
            (r or 0.0) < 0,
            f"{names[i]} and {names[j]}: {_coefficient_text(r)}",
        )
        for i, row in enumerate(correlations.values)
        for j, r in enumerate(row)
    ]
    pairs = [
        (names[i], names[j], r)
        for i, j in combinations(range(size), 2)
        if (r := correlations.values[i][j]) is not None
    ]
    return CorrelationFigure(
        correlations=correlations,
        cell=CELL,
        labels=labels,
        cells=cells,
        width=LABELS + size * CELL + 1,
        height=TOP + size * CELL + 1,
        pairs=sorted(pairs, key=lambda pair: -abs(pair[2]))[:PAIRS],
    )


def _coefficient_text(r: float | None) -> str:
    return "not defined" if r is None else f"{r:.2f}"


def _shorten(name: str) -> str:
    return name if len(name) <= MOST_CHARACTERS else f"{name[: MOST_CHARACTERS - 1]}…"


def _bars(columns: tuple[Information, ...]) -> list[tuple[Information, float]]:
    return list(zip(columns, bar_lengths(columns, lambda column: column.bits), strict=True))


def _class_rows(overview: SplitOverview) -> list[ClassRow]:
    """Return each class with its rows in each part, and their shares."""
    return [
        ClassRow(
            label,
            tuple((part.counts[i], 100 * part.counts[i] / max(part.rows, 1)) for part in overview.parts),
        )
        for i, label in enumerate(overview.classes)
    ]
