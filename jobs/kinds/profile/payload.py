"""Defines the payload, the result and the task of a profile."""

from typing import Literal

from jobs.contracts.columns import ColumnRequest
from jobs.contracts.dialect import ReadOptions
from jobs.contracts.file_limits import DEFAULT_LIMITS, FileLimits
from jobs.contracts.profile import Profile
from jobs.contracts.task_parts import OptionalInputPath, Task
from jobs.kinds.base import Payload, Result


class ProfilePayload(Payload):
    """The dataset version that is read and described."""

    dataset_version: int


class ProfileResult(Result):
    """The profile of a table, and its digest. Both are stored in the dataset version."""

    profile: Profile
    digest: str


class ProfileTask(Task):
    """Read an upload or a bundled data set, write it as .npz, and describe it."""

    kind: Literal["profile"] = "profile"
    source: Literal["bundled", "csv", "json_lines", "npz", "npy", "parquet", "arrow"]
    path: OptionalInputPath = None
    bundled: str | None = None
    target: str | None = None
    features: tuple[str, ...] | None = None
    task: str | None = None
    columns: tuple[ColumnRequest, ...] = ()
    reading: ReadOptions = ReadOptions()
    limits: FileLimits = DEFAULT_LIMITS

    def reads_foreign_file(self) -> bool:
        """Return whether it reads an upload."""
        return self.source != "bundled"
