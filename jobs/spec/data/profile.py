"""Declares a dataset version's profile, which a profile task writes and plans and the engine read."""

from typing import Any, Literal

from pydantic import Field

from jobs.spec.base import Frozen
from jobs.spec.data.columns import ColumnRequest, ColumnRole, ColumnType
from jobs.spec.data.dialect import Dialect
from jobs.spec.data.file_description import FileDescription
from jobs.spec.data.gap_words import named_words
from jobs.spec.data.images import ImageShape, ImageStatistics
from jobs.spec.data.number_format import NumberFormat
from jobs.spec.data.offers import Misfits, Offer
from jobs.spec.sections.data import Task

DataKind = Literal["vector", "image", "sequence"]
TemplateKind = Literal["vector", "image", "sequence", "text"]
"""Data kinds that templates accept. A table with texts among its features is a vector and a text."""


class Column(Frozen):
    """One column (or one array, for images) with the statistics that a page shows."""

    name: str
    role: ColumnRole | None = Field(default=None, description="Null in profiles of earlier releases.")
    type: ColumnType | None = Field(default=None, description="Null in profiles of earlier releases.")
    reason: str | None = Field(default=None, description="Why the column is left out.")
    dtype: str
    shape: tuple[int, ...] = Field(default=(), description="Of one row; empty for a scalar.")
    date_format: str | None = Field(
        default=None,
        description="How the texts are dates, as in `strptime`; null for other types, and for dates that "
        "are no texts in the file.",
    )
    missing: int = 0
    misfits: Misfits | None = Field(
        default=None, description="Values that do not have the type; they are also counted as missing."
    )
    number_format: NumberFormat | None = Field(
        default=None,
        description="How its texts were numbers, also of words; null if none were.",
    )
    gap_words: tuple[str, ...] | None = Field(
        default=None,
        description="The words that are missing values. Null: the usual words between numbers and dates, and "
        "none between other words; of a boolean column also that its values were no texts.",
    )
    gap_counts: dict[str, int] = Field(
        default={},
        description="The words in the file where its numbers, dates or truth values are missing, with the "
        "number of their rows; empty without any, and if they are not known.",
    )
    distinct: int | None = None
    frequent: int | None = Field(default=None, description="Values of a category in five rows or more.")
    ngrams: int | None = Field(default=None, description="N-grams of a text in two rows or more.")
    vocabulary: int | None = Field(default=None, description="Words of a text in two rows or more.")
    length: int | None = Field(
        default=None, description="95 % of the texts have at most this number of words."
    )
    values: tuple[str, ...] = Field(
        default=(), description="The most frequent values of a category, or words of a text."
    )
    merge_labels: bool = Field(
        default=False,
        description="Values that differ in their writing only are one value, in the most frequent writing.",
    )
    image: ImageShape | None = Field(default=None, description="Size of the arrays that images become.")
    min: float | None = Field(default=None, description="Of numbers, and of the characters of a text.")
    max: float | None = None
    mean: float | None = None
    std: float | None = None
    earliest: str | None = Field(default=None, description="The first date of a column of dates, ISO 8601.")
    latest: str | None = None
    histogram: tuple[int, ...] = Field(
        default=(), description="Counts in 20 equal bins from min to max, or from the earliest to the latest."
    )

    @property
    def named_gaps(self) -> str:
        """Return the words that are missing values with the number of their rows, for people."""
        return named_words(tuple(self.gap_counts), self.gap_counts)


class InputBlock(Frozen):
    """The positions of the input that one column fills."""

    column: str
    start: int
    positions: int
    kind: Literal["number", "plain", "index", "tokens"] = Field(
        description="number: the model standardizes it; plain: used as it is; index: becomes a vector; "
        "tokens: indices of the words of a text in their order, 0 after its end."
    )
    size: int = Field(default=0, description="Number of indices; 0 for number and plain.")


class DataSchema(Frozen):
    """The columns of a dataset version and their statistics."""

    kind: DataKind
    task: Task
    target: str
    features: tuple[str, ...]
    inputs: tuple[str, ...] = Field(
        default=(), description="Entries of a vector input in order; `colour=red` is a one-hot column."
    )
    input_shape: tuple[int, ...] = Field(description="Of one row as the model takes it.")
    has_pipeline: bool = Field(
        default=False, description="Whether columns become numbers by a pipeline that the training part fits."
    )
    blocks: tuple[InputBlock, ...] = Field(default=(), description="The columns of a pipeline's input.")
    weight: str | None = Field(
        default=None, description="The column with the role weight, by whose numbers the rows are weighted."
    )
    part_rows: tuple[int, int, int] | None = Field(
        default=None,
        description="Rows for training, validation and test that the column with the role split names.",
    )
    outputs: int = Field(description="The number of classes, or of target columns for regression.")
    class_labels: tuple[str, ...] = ()
    class_counts: tuple[int, ...] = ()
    columns: tuple[Column, ...]
    dialect: Dialect | None = Field(default=None, description="Of tables of text.")
    file: FileDescription | None = Field(
        default=None, description="The format of the file; null in profiles of earlier releases."
    )
    images: ImageStatistics | None = Field(default=None, description="Of archives of images.")
    bad_rows: int = Field(default=0, description="Rows that were left out, because they could not be read.")
    rows_without_target: int = Field(
        default=0, description="Rows that were left out, because they have no value of the target."
    )
    duplicates: int = Field(default=0, description="Rows that repeat an earlier row.")
    findings: tuple[str, ...] = Field(
        default=(), description="Sentences on leakage, imbalance and constants."
    )
    offers: tuple[Offer, ...] = Field(
        default=(), description="Changes of columns that a person may accept with one click."
    )


class Profile(DataSchema):
    """A dataset version's schema, statistics and preview."""

    rows: int
    preview: tuple[dict[str, Any], ...] = Field(
        description="The first rows; images of arrays are nested lists, those of an archive are left out."
    )

    @property
    def embedded(self) -> tuple[InputBlock, ...]:
        """Return the positions that hold indices, which the model turns into vectors."""
        return tuple(block for block in self.blocks if block.kind in ("index", "tokens"))

    @property
    def tokens(self) -> tuple[InputBlock, ...]:
        """Return the positions that hold texts' words in their order."""
        return tuple(block for block in self.blocks if block.kind == "tokens")

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the features that are texts."""
        text_columns = {column.name for column in self.columns if column.type == "text"}
        return tuple(name for name in self.features if name in text_columns)

    @property
    def kinds(self) -> frozenset[TemplateKind]:
        """Return all kinds that these data have."""
        # No template reads texts' words in their order if rows are in windows.
        is_text = self.texts and self.kind != "sequence"
        return frozenset({self.kind, "text"}) if is_text else frozenset({self.kind})

    def schema_alone(self) -> DataSchema:
        """Return the schema and statistics without any row."""
        return DataSchema.model_construct(**{name: getattr(self, name) for name in DataSchema.model_fields})

    def is_read_as(self, change: ColumnRequest) -> bool:
        """Return whether a change keeps how its column was read."""
        column = next((column for column in self.columns if column.name == change.name), None)
        fields = change.model_dump(exclude_none=True)
        return column is not None and all(
            getattr(column, field) == getattr(change, field) for field in fields
        )
