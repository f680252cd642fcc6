"""Declares a case of the collection: a file, and how its columns must be understood."""

from dataclasses import dataclass, field
from typing import Any

from jobs.spec.data.columns import ColumnRequest, ColumnRole, ColumnType
from jobs.upload_formats import Source


@dataclass(frozen=True)
class ExpectedColumn:
    """A column as the profile must describe it. Fields that are None are not compared.

    Attributes:
        type: its type.
        role: its role.
        missing: how many values are missing, misfits included.
        values: its values in `dataset.arrow`, in the order of the rows; None for a missing one.
    """

    type: ColumnType
    role: ColumnRole | None = None
    missing: int | None = None
    values: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class TableCase:
    """A small file and how its profile must describe it.

    Attributes:
        name: the file's name, which is also the name of the test.
        content: its bytes.
        columns: the expected columns by name. Columns that are not named are not compared.
        findings: texts, each of which must be in one finding, or in the finding of an offer.
        absent: texts that must be in no finding.
        offers: for each offer that must be made, its column, and the fields of its change.
        gap_words: the words that must be missing values, by column.
        gap_counts: the words in the place of missing numbers and dates, with their rows, by column.
        requests: roles and types that a person chose.
        target: the target column; the last one if None.
        source: the format of the file; None for the one that an upload detects.
        file: parts of the expected description of the file.
        dialect: parts of the expected dialect.
        refusal: a text in the message with which the file is refused; the file is read if None.
    """

    name: str
    content: bytes
    columns: dict[str, ExpectedColumn] = field(default_factory=dict)
    findings: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    offers: tuple[tuple[str, dict[str, Any]], ...] = ()
    gap_words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    gap_counts: dict[str, dict[str, int]] = field(default_factory=dict)
    requests: tuple[ColumnRequest, ...] = ()
    target: str | None = None
    source: Source | None = "csv"
    file: dict[str, Any] = field(default_factory=dict)
    dialect: dict[str, Any] = field(default_factory=dict)
    refusal: str | None = None


def csv_rows(*rows: str) -> bytes:
    """Return lines as the bytes of a CSV file."""
    return "".join(f"{row}\n" for row in rows).encode()
