"""Declares a dataset version's overview: how its columns are related, and how its parts differ.

The profile job stores it as a file beside the profile: only the version's page and REST read it. The job
writes it again after each section, so that a section is shown as soon as it is computed. Each section has a
bounded number of columns, those with the largest values.
"""

import hashlib
from typing import Any, Literal, Self

from pydantic import Field, JsonValue

from jobs.spec.base import Frozen
from jobs.spec.sections.data import Split

SAMPLE_ROWS = 20_000
"""Correlations and mutual information are computed from at most this many rows, drawn at random."""
CELLS = 10_000_000
"""Tables with more values than this have fewer rows in the sample, and when parts are compared."""
BLOCKS = 40
"""The missing-value map divides the rows into at most this many blocks."""
GAP_COLUMNS = 40
INFORMATIVE_COLUMNS = 30
CORRELATED_COLUMNS = 16
CORRELATION_CANDIDATES = 300
"""Among at most this many numeric columns, those with the largest correlations are found."""
CLASSES = 30

Part = Literal["train", "validation", "test"]
Section = Literal["gaps", "information", "correlations", "parts", "repeats"]
"""In the order in which they are computed."""


class Sample(Frozen):
    """A table's first rows as they were read, before its columns are described."""

    rows: int = Field(description="Of the whole table.")
    columns: tuple[str, ...]
    preview: tuple[dict[str, JsonValue], ...]


class ColumnGaps(Frozen):
    """Where a column has missing values."""

    column: str
    missing: int = Field(description="Rows without a value.")
    percent: tuple[int, ...] = Field(description="Of each block of rows, in the order of the file.")


class Gaps(Frozen):
    """The missing-value map: the columns with most missing values."""

    block_rows: int = Field(description="Rows of a block; the last one may have fewer.")
    columns: tuple[ColumnGaps, ...]
    more: int = Field(description="Further columns with missing values.")


class Information(Frozen):
    """The information that a column has about the target."""

    column: str
    bits: float = Field(description="Mutual information, corrected for chance.")
    share: float | None = Field(description="Of the target's entropy; null if that is 0.")


class Correlations(Frozen):
    """Pearson's r of the numeric columns with the largest correlations, of rows that have both values."""

    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...] = Field(
        description="A row for each column; null without two rows, or if a column is constant."
    )
    considered: int = Field(description="Numeric columns that were compared.")
    numeric: int = Field(description="Numeric columns of the table.")


class PartRows(Frozen):
    """The target in one part of the split."""

    part: Part
    rows: int
    counts: tuple[int, ...] = Field(default=(), description="Rows of each class in `classes`.")
    mean: float | None = Field(default=None, description="Of the target, for regression.")
    std: float | None = None
    min: float | None = None
    max: float | None = None


class Repeats(Frozen):
    """Rows of a part whose features a training row has too."""

    part: Literal["validation", "test"]
    exact: int = Field(description="All features are equal.")
    exact_same_target: int = Field(description="Of these, the target is equal too.")
    near: int | None = Field(
        description="All features are equal after numbers are rounded to a hundredth of their standard "
        "deviation, dates to the day, and texts compared without case and repeated spaces; null for images "
        "and arrays."
    )


class SplitOverview(Frozen):
    """How the parts of a split differ, and which rows of them training knows."""

    rows: int
    split: Split = Field(description="With the column that a role decides.")
    split_problem: str | None = Field(default=None, description="Why the rows cannot be split.")
    classes: tuple[str, ...] = Field(default=(), description="The most frequent classes or labels.")
    more_classes: int = 0
    parts: tuple[PartRows, ...] = ()
    compared_rows: int = Field(default=0, description="Rows of which the repeats were counted.")
    repeats: tuple[Repeats, ...] = ()
    pending: tuple[Section, ...] = Field(default=(), description="Sections that are not computed yet.")

    def with_sections(self, *sections: Section, **fields: Any) -> Self:
        """Return a copy with further sections, which are no longer pending."""
        left = tuple(section for section in self.pending if section not in sections)
        return self.model_copy(update={**fields, "pending": left})


class Overview(SplitOverview):
    """How the columns of a dataset version are related, and how the parts of its split differ.

    The split is that with which a new experiment begins.
    """

    sample_rows: int = Field(description="Rows of which correlations and information were computed.")
    gaps: Gaps | None = Field(default=None, description="Null without missing values.")
    information: tuple[Information, ...] = Field(
        default=(), description="Of the columns with most; none for texts, arrays and several labels."
    )
    correlations: Correlations | None = Field(default=None, description="Null without two numeric columns.")


def key_of(split: Split) -> str:
    """Compute a key for a canonical split, which identifies it within a dataset version.

    Defaults are left out, so that earlier results are found after `Split` gets another field.
    """
    return hashlib.sha256(split.model_dump_json(exclude_defaults=True).encode()).hexdigest()[:16]
