"""Declares the answers about data sets: their versions and previews."""

from datetime import datetime

from pydantic import ConfigDict, Field

from jobs.contracts.answers.base import Answer, CauseOut, JsonValue, Stored, Time
from jobs.contracts.columns import ColumnRole, ColumnType
from jobs.contracts.profile import DataSchema


class ColumnOut(Answer):
    """Role and type of a column; null in versions of earlier releases and for arrays."""

    name: str
    role: ColumnRole | None
    type: ColumnType | None
    missing: int = Field(description="Rows without a value.")
    distinct: int | None = Field(description="Different values; null for arrays.")
    reason: str | None = Field(description="Why it is left out of the features.")


class DatasetVersionOut(Answer):
    """One immutable version of a data set."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    dataset: str
    project: str | None = Field(description="Null for bundled data sets.")
    number: int
    state: str = Field(description="preparing, ready or failed.")
    source: str
    file: str | None
    digest: str | None
    rows: int | None
    schema_: DataSchema | None = Field(
        alias="schema", description="Columns and statistics; null until the version is ready."
    )
    columns: list[ColumnOut] = Field(description="Empty until the version is ready.")
    error: Stored[CauseOut | None] = Field(description="Why the version failed.")
    job: int | None = Field(description="The job that reads it.")
    created_by: str | None
    created: datetime


class LatestVersionOut(Answer):
    """The newest version of a data set in short."""

    number: int
    state: str
    digest: str | None
    rows: int | None


class DatasetOut(Answer):
    """A data set with its newest version."""

    slug: str
    name: str
    description: str
    project: str | None = Field(description="Null for bundled data sets.")
    source: str
    versions: int
    latest: LatestVersionOut | None
    created_by: str | None
    created: Time


class PreviewOut(Answer):
    """The first rows of a data set version."""

    state: str
    columns: list[str]
    rows: Stored[list[dict[str, JsonValue]]] = Field(description="Images are nested lists.")
