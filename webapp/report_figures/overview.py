"""Prepares the overview of a dataset version: missing values, relations of columns, parts of the split."""

from itertools import combinations
from typing import Any, NamedTuple

from jobs.messages.overview import (
    ColumnGaps,
    Correlations,
    Information,
    Overview,
    Section,
    SplitOverview,
)
from jobs.spec.data.profile import Profile
from webapp.report_figures.geometry import shares

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
    """A cell of a picture, with the text that explains it."""

    x: float
    y: float
    opacity: float
    is_negative: bool
    title: str


class Label(NamedTuple):
    """The name of a column beside its row of cells, and its number above."""

    number: int
    name: str
    shown: str
    y: float
    x: float


class GapRow(NamedTuple):
    """A column of the missing-value map: the opacity of each block, and where the gaps are in words."""

    column: str
    missing: int
    blocks: tuple[tuple[int, float], ...]
    summary: str


class ClassRow(NamedTuple):
    """A class with its rows and its share in each part."""

    label: str
    cells: tuple[tuple[int, float], ...]


def context(found: Overview) -> dict[str, Any]:
    """Return the context of `data/overview.html`, and of the parts of the split of a new experiment."""
    return {
        "overview": found,
        "gaps": None if found.gaps is None else [_gap_row(each) for each in found.gaps.columns],
        "gap_blocks": 0 if found.gaps is None else len(found.gaps.columns[0].percent),
        "correlations": None if found.correlations is None else _correlation_figure(found.correlations),
        "information": _bars(found.information),
        "default_parts": parts_context(found),
    }


def pending_titles(found: Overview | None, profile: Profile, *, is_preparing: bool) -> list[str]:
    """Return the titles of the sections that a worker still computes.

    Args:
        found: the overview as far as it is computed; None before.
        profile: of the same version.
        is_preparing: whether a worker computes them.
    """
    if not is_preparing:
        return []
    if found is not None:
        return [SECTION_TITLES[section] for section in found.pending]
    is_table = profile.has_pipeline and profile.images is None
    return [title for section, title in SECTION_TITLES.items() if is_table or section not in OF_TABLES]


def parts_context(found: SplitOverview) -> dict[str, Any]:
    """Return the value of `parts` for `data/parts.html`."""
    return {
        "overview": found,
        "part_names": [PART_NAMES[part.part] for part in found.parts],
        "classes": _class_rows(found),
        "numbers": [(PART_NAMES[part.part], part) for part in found.parts if part.mean is not None],
        "repeats": [(PART_NAMES[each.part], each) for each in found.repeats],
    }


def _gap_row(found: ColumnGaps) -> GapRow:
    blocks = tuple(
        (place, round(LIGHTEST + (1 - LIGHTEST) * percent / 100, 2))
        for place, percent in enumerate(found.percent)
        if percent
    )
    places = [place for place, _ in blocks]
    first, last, count = places[0] + 1, places[-1] + 1, len(found.percent)
    where = f"in block {first}" if first == last else f"in {len(places)} of {count} blocks, {first} to {last}"
    return GapRow(found.column, found.missing, blocks, where)


def _correlation_figure(found: Correlations) -> dict[str, Any]:
    size = len(found.columns)
    labels = [
        Label(i + 1, name, _short(name), TOP + (i + 0.5) * CELL, LABELS + (i + 0.5) * CELL)
        for i, name in enumerate(found.columns)
    ]
    cells = [
        Cell(
            LABELS + j * CELL,
            TOP + i * CELL,
            round(abs(r or 0.0), 2),
            (r or 0.0) < 0,
            f"{found.columns[i]} and {found.columns[j]}: {_shown(r)}",
        )
        for i, row in enumerate(found.values)
        for j, r in enumerate(row)
    ]
    pairs = [
        (found.columns[i], found.columns[j], r)
        for i, j in combinations(range(size), 2)
        if (r := found.values[i][j]) is not None
    ]
    return {
        "found": found,
        "cell": CELL,
        "labels": labels,
        "cells": cells,
        "width": LABELS + size * CELL + 1,
        "height": TOP + size * CELL + 1,
        "pairs": sorted(pairs, key=lambda pair: -abs(pair[2]))[:PAIRS],
    }


def _shown(r: float | None) -> str:
    return "not defined" if r is None else f"{r:.2f}"


def _short(name: str) -> str:
    return name if len(name) <= MOST_CHARACTERS else f"{name[: MOST_CHARACTERS - 1]}…"


def _bars(found: tuple[Information, ...]) -> list[tuple[Information, float]]:
    return list(zip(found, shares(found, lambda each: each.bits), strict=True))


def _class_rows(found: SplitOverview) -> list[ClassRow]:
    """Return the rows of each class in each part, with its share of the part's rows."""
    return [
        ClassRow(
            label,
            tuple((part.counts[i], 100 * part.counts[i] / max(part.rows, 1)) for part in found.parts),
        )
        for i, label in enumerate(found.classes)
    ]
