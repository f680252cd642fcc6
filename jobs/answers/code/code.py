"""Declares the answers about code of users: versions, their files and differences."""

from pydantic import Field

from jobs.answers.base import Answer, CauseOut, Stored, Time
from jobs.messages.code import (
    CodeEntry,
    CodeNotice,
    CodePackages,
    CodeProblem,
    CodeSearch,
    FileDifference,
)
from jobs.spec.checks.dry_build import BuiltModel


class CodeSummaryOut(Answer):
    """A version of code in a list."""

    digest: str = Field(description="Of the sorted paths and contents: the same files have the same digest.")
    name: str
    project: str
    entries: list[str] = Field(description="Names of the functions, classes and scripts that were found.")
    problems: int = Field(description="Number of places that cannot be read as Python.")
    packages: bool = Field(description="Whether it lists packages that it needs.")
    files: int
    bytes: int
    created_by: str
    created: Time


class CodeVersionOut(CodeSummaryOut):
    """A version of code with all findings. Nothing in it was executed."""

    python: str = Field(description="The version of Python whose grammar was used.")
    found: Stored[list[CodeEntry]] = Field(description="Functions, classes and scripts.")
    unreadable: Stored[list[CodeProblem]] = Field(description="Syntax errors, and files that are not text.")
    notices: Stored[list[CodeNotice]] = Field(description="What to know before the code is used.")
    runs: Stored[list[CodeNotice]] = Field(
        description="Statements that load data or train when the file is imported, as in a notebook."
    )
    search: Stored[CodeSearch | None] = Field(description="The last search that these statements describe.")
    searches: Stored[list[CodeSearch]] = Field(
        description="All searches and trainings that these statements describe, in their order."
    )
    requirements: Stored[CodePackages | None] = Field(
        description="The packages of `requirements.txt` or `pyproject.toml`."
    )
    left_out: int = Field(description="Files that were not kept: hidden ones, compiled ones and caches.")


class CodeFileOut(Answer):
    """A file of a version."""

    path: str
    bytes: int
    lines: int | None = Field(description="Null if it is not text.")
    digest: str = Field(description="Of its content.")


class CodeFilesOut(Answer):
    """The files of a version, sorted by path."""

    items: list[CodeFileOut]


class CodeTextOut(CodeFileOut):
    """A file with its text."""

    text: str


class CodeDifferencesOut(Answer):
    """The differences of two versions: files that are equal in both are left out."""

    old: str = Field(description="The digest of the version with which `new` is compared.")
    new: str
    equal: int = Field(description="Number of files that are equal.")
    files: Stored[list[FileDifference]]


class DryBuildOut(Answer):
    """The model that an entry of a version of code builds, found by a job."""

    state: str = Field(description="The state of the job; none: it was not requested yet.")
    job: int | None
    built: Stored[BuiltModel | None] = Field(description="Null until the job is completed.")
    unused: dict[str, str] = Field(
        description="Pointers of fields of a spec that have no effect on the model, with the reason."
    )
    error: CauseOut | None = Field(description="Why the job failed.")
    why_waiting: str = Field(description="A sentence; empty if the job does not wait.")


class CodeDataOut(Answer):
    """The data that a function of a version of code loads, by a job."""

    state: str = Field(description="The state of the job.")
    job: int
    entry: str = Field(description="The function.")
    dataset: str = Field(description="The data set that gets the rows as a version.")
    version: int | None = Field(description="Its number; null until the job is completed.")
    version_state: str | None = Field(
        description="`preparing` until the rows are described, then `ready` or `failed`."
    )
    rows: dict[str, int] = Field(description="Of each part; training alone if the code makes no parts.")
    error: CauseOut | None = Field(description="Why the job failed.")
    why_waiting: str = Field(description="A sentence; empty if the job does not wait.")
    created_by: str | None
    created: Time


class CodeDataListOut(Answer):
    """The newest jobs of a version of code that load data, newest first."""

    items: list[CodeDataOut]
