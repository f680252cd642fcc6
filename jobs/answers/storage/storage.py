"""Declares the answers about the storage that projects use."""

from pydantic import Field

from jobs.answers.base import Answer, Time


class FilesOut(Answer):
    """Some files."""

    files: int
    bytes: int


class ProjectStorageOut(Answer):
    """The files of one project, each counted once, for the first kind that refers to it, and its events."""

    project: str | None = Field(description="Null for the bundled data.")
    name: str
    datasets: FilesOut = Field(description="Uploads and tables of data sets.")
    code: FilesOut = Field(description="Source files of versions of code.")
    versions: FilesOut = Field(description="Files of model versions.")
    outputs: FilesOut = Field(description="Other files that jobs have written.")
    checkpoints: FilesOut
    deleted: FilesOut = Field(description="Files that only deleted objects refer to, which can be restored.")
    events: int = Field(
        description="Bytes of stored events and metric points of its jobs, including deleted ones."
    )
    bytes: int = Field(description="The sum.")


class StorageOut(Answer):
    """The storage that the caller's projects use."""

    projects: list[ProjectStorageOut] = Field(description="The largest first.")
    stored: FilesOut | None = Field(
        description="All artifacts; files that several projects share count once. For administrators."
    )
    unreferenced: FilesOut | None = Field(
        description="Artifacts that nothing refers to: the next collections delete them. For administrators."
    )
    collected: Time | None = Field(
        description="When a collection last deleted something. For administrators."
    )
