"""Declares the answers about data sets: their versions and previews."""

from datetime import datetime

from pydantic import ConfigDict, Field

from jobs.answers.base import Answer, CauseOut, Stored, Time
from jobs.messages.overview import Overview, SplitOverview
from jobs.spec.data.columns import ColumnRole, ColumnType
from jobs.spec.data.profile import DataSchema
from jobs.spec.json_types import JsonValue
from jobs.spec.sections.data import Split


class ColumnOut(Answer):
    """Role and type of a column; null in versions of earlier releases and for arrays."""

    name: str
    role: ColumnRole | None
    type: ColumnType | None
    missing: int = Field(description="Rows without a value.")
    distinct: int | None = Field(description="Different values; null for arrays.")
    reason: str | None = Field(description="Why it is left out of the features.")


class FetchOut(Answer):
    """How the file of a version comes from an address."""

    url: str = Field(description="The address without its query, which may contain a signature.")
    mode: str = Field(description="copy: the file is stored; reference: only until the version is ready.")
    state: str = Field(description="waiting, running, done, failed or cancelled.")
    credential: str | None = Field(description="The name of the project's credential.")
    received: int = Field(description="Bytes.")
    total: int | None = Field(description="Bytes that the source announced; null if it announced none.")
    eta_seconds: float | None = Field(description="Null while it is unknown.")
    attempt: int = Field(description="Greater than 1 if a process was killed.")
    etag: str | None
    modified: str | None = Field(description="When the file was last changed, as the source gives it.")
    sha256: str | None = Field(description="The digest of the file; null until it is complete.")


class LoadedByOut(Answer):
    """The code that has made a version of a data set."""

    digest: str = Field(description="Of the version of code, in the same project.")
    entry: str = Field(description="Its function.")
    job: int = Field(description="The job that has executed it.")


class DatasetVersionOut(Answer):
    """One immutable version of a data set."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    dataset: str
    project: str | None = Field(description="Null for bundled data sets.")
    number: int
    state: str = Field(description="preparing, ready or failed.")
    source: str
    file: str | None = Field(description="The first of `files`.")
    files: list[str] = Field(description="Names of its files, in the order in which their rows follow.")
    digest: str | None
    rows: int | None
    schema_: DataSchema | None = Field(
        alias="schema", description="Columns and statistics; null until the version is ready."
    )
    columns: list[ColumnOut] = Field(description="Empty until the version is ready.")
    error: Stored[CauseOut | None] = Field(description="Why the version failed.")
    job: int | None = Field(description="The job that reads it.")
    fetch: FetchOut | None = Field(description="Null for uploads and bundled data.")
    code: LoadedByOut | None = Field(description="The code that loaded it; null for all other data.")
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
    rows: Stored[list[dict[str, JsonValue]]] = Field(
        description="Images of arrays are nested lists; those of an archive are left out."
    )
    thumbnails: str | None = Field(
        description="Of an archive of images: the digest of a JPEG file, laid out as in `schema.images`."
    )


class OverviewOut(Answer):
    """How the columns of a data set version are related, and how the parts of its split differ."""

    state: str
    overview: Overview | None = Field(
        description="While the version is prepared, the sections so far; null before, and of versions of "
        "earlier releases."
    )


class SplitOverviewOut(Answer):
    """How the parts of a split differ, computed by a job."""

    split: Split = Field(description="With the column that a role decides.")
    state: str = Field(description="The state of the job; none: it was not computed yet.")
    job: int | None = Field(
        description="Null if it was not computed, together with the profile, or in a project that the caller "
        "cannot see.",
    )
    overview: SplitOverview | None = Field(description="The sections so far; null before the first.")
    error: CauseOut | None = Field(description="Why the job failed.")
    why_waiting: str = Field(description="A sentence; empty if the job does not wait.")
