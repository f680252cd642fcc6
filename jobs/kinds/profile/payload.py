"""Defines the payload, the result and the task of a profile."""

from typing import Literal

from pydantic import Field

from jobs.kinds.base import Payload, Result
from jobs.messages.task import InputPath, OptionalInputPath, Task
from jobs.spec.base import Frozen
from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.dialect import ReadOptions
from jobs.spec.data.file_limits import DEFAULT_LIMITS, FileLimits
from jobs.spec.data.profile import Profile
from jobs.spec.sections.data import RowsWithoutTarget


class ProfilePayload(Payload):
    """The dataset version that is read and described."""

    dataset_version: int


class ProfileResult(Result):
    """A table's profile and digest. Both are stored in the dataset version."""

    profile: Profile
    digest: str


class FurtherFile(Frozen):
    """A further file, if a version has several."""

    path: InputPath


class ProfileTask(Task):
    """Read an upload or a bundled data set, write it as an Arrow file, and describe it."""

    kind: Literal["profile"] = "profile"
    source: Literal["bundled", "csv", "json_lines", "npz", "npy", "parquet", "arrow", "xlsx", "images"]
    path: OptionalInputPath = None
    more: tuple[FurtherFile, ...] = Field(default=(), description="files whose rows follow, in this order")
    bundled: str | None = None
    target: str | None = None
    features: tuple[str, ...] | None = None
    task: str | None = None
    columns: tuple[ColumnRequest, ...] = ()
    rows_without_target: RowsWithoutTarget = "refuse"
    reading: ReadOptions = ReadOptions()
    limits: FileLimits = DEFAULT_LIMITS

    def reads_foreign_file(self) -> bool:
        """Return whether it reads an upload."""
        return self.source != "bundled"
