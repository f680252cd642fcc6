"""The columns, sample rows and classes on a version's page."""

from collections.abc import Container
from dataclasses import dataclass
from typing import Any, NamedTuple

from jobs.messages.overview import Sample
from jobs.queries.data import datasets as queries
from jobs.queries.data.datasets import PartSizes
from jobs.queries.paging import Page
from jobs.spec.data.profile import Column, Profile
from jobs.spec.data.split_roles import resolved
from jobs.spec.sections.data import Split
from webapp.pages.data.pictures import Bar, histogram_bars, png_uri
from webapp.pages.shortcuts import Request
from webapp.template_context import Context
from webapp.templatetags import words

SAMPLE_ROWS = 12
SHOWN_COLUMNS = 100
"""Columns on one page; an upload may have many thousand, each with a histogram."""
SHOWN_CLASSES = 100


def read_place(text: str) -> int:
    """Return the place of the first shown entry of a list, as a URL has it; 0 for another text."""
    # More digits cannot be a position, and `int` refuses thousands of them.
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0


class ColumnView(NamedTuple):
    """A column with its histogram bars."""

    column: Column
    bars: list[Bar]
    role: str
    label: str


class ClassShare(NamedTuple):
    """A class with its share of the rows."""

    label: str
    rows: int
    percent: float
    width: float


class Cell(NamedTuple):
    """A value in a sample row: an image as a data URL, or a text; None is a missing value."""

    image: str | None
    text: Any


class FirstRows(NamedTuple):
    """The rows that are shown until the columns are described."""

    columns: tuple[str, ...]
    rows: list[list[Cell]]
    total: int


class ColumnFilter(NamedTuple):
    """The filter of the table of columns."""

    text: str
    is_left_out: bool

    def fits(self, column: Column) -> bool:
        """Return whether a column is listed."""
        return self.text.lower() in column.name.lower() and (
            column.reason is not None or not self.is_left_out
        )


@dataclass(frozen=True)
class ProfileSection(Context):
    """The columns on one page, sample rows, and the classes."""

    columns: list[ColumnView]
    columns_page: Page[ColumnView]
    column_filter: ColumnFilter
    column_count: int
    left_out: int
    sample_columns: list[ColumnView]
    sample: list[list[Cell]]
    balance: list[ClassShare]
    more_classes: int
    parts: PartSizes
    split: Split
    inputs: str


def profile_context(profile: Profile, request: Request) -> ProfileSection:
    """Return the columns that `?find=&show=&cursor=` choose, rows with their values, and the classes."""
    first = read_place(request.GET.get("cursor", ""))
    column_filter = ColumnFilter(request.GET.get("find", "").strip(), request.GET.get("show") == "left_out")
    fitting = [column for column in profile.columns if column_filter.fits(column)]
    listed = fitting[first : first + SHOWN_COLUMNS]
    # The images of an archive are shown as thumbnails.
    sampled = [column for column in listed if column.type != "image"]
    after = first + len(listed)
    features = frozenset(profile.features)
    columns = [_column_view(column, profile, features) for column in listed]
    return ProfileSection(
        columns=columns,
        columns_page=Page(columns, str(after) if 0 < after < len(fitting) else None, len(fitting)),
        column_filter=column_filter,
        column_count=len(profile.columns),
        left_out=sum(column.reason is not None for column in profile.columns),
        sample_columns=[drawn for drawn in columns if drawn.column in sampled],
        sample=[
            [_cell_of_value(row.get(c.name), c) for c in sampled] for row in profile.preview[:SAMPLE_ROWS]
        ],
        balance=_class_shares(profile),
        more_classes=max(len(profile.class_labels) - SHOWN_CLASSES, 0),
        parts=queries.part_sizes(profile, Split()),
        split=resolved(Split(), profile),
        inputs=" × ".join(str(size) for size in profile.input_shape),
    )


def preview_rows(sample: Sample) -> FirstRows:
    """Return the rows that are shown until the columns are described."""
    names = sample.columns[:SHOWN_COLUMNS]
    plain = [Column(name=name, dtype="") for name in names]
    rows = [[_cell_of_value(row.get(c.name), c) for c in plain] for row in sample.preview[:SAMPLE_ROWS]]
    return FirstRows(names, rows, sample.rows)


def _column_view(column: Column, profile: Profile, features: Container[str]) -> ColumnView:
    role = "target" if column.name == profile.target else "feature" if column.name in features else ""
    return ColumnView(column, histogram_bars(column.histogram), role, _histogram_label(column))


def _histogram_label(column: Column) -> str:
    """Describe a histogram by its column and range, for screen readers."""
    low, high = words.number(column.min), words.number(column.max)
    if column.earliest is not None and column.latest is not None:
        low, high = column.earliest[:10], column.latest[:10]
    what = "histogram"
    if column.type == "text" and column.min is not None and column.max is not None:
        what, low, high = "lengths in characters", str(round(column.min)), str(round(column.max))
    return f"{what} of {column.name} from {low} to {high}"


def _cell_of_value(value: Any, column: Column) -> Cell:
    """Return a sample value as an image if the column has images, else as text."""
    if column.type == "sequence":
        return Cell(None, " × ".join(str(size) for size in column.shape) + " numbers")
    if len(column.shape) in (2, 3) and column.min is not None and column.max is not None:
        return Cell(png_uri(value, column.min, column.max), "image")
    if isinstance(value, list):
        return Cell(None, f"{len(value)} values")
    if column.type == "date" and value is not None:
        # Without the time if it is midnight, and without fractions of a second.
        return Cell(None, str(value)[:19].removesuffix("T00:00:00").replace("T", " "))
    if value == "":
        # A missing text or category; a missing number is null.
        return Cell(None, None)
    is_whole = isinstance(value, float) and value.is_integer()
    return Cell(None, int(value) if is_whole else value)


def _class_shares(profile: Profile) -> list[ClassShare]:
    most = max(profile.class_counts, default=0)
    return [
        ClassShare(label, count, 100 * count / profile.rows, 100 * count / most if most else 0)
        for label, count in zip(profile.class_labels[:SHOWN_CLASSES], profile.class_counts, strict=False)
    ]
