"""What the row of a profile holds, and its task."""

from typing import Literal

from jobs.contracts.profile import Profile
from jobs.contracts.task_parts import Task
from jobs.kinds.base import Payload, Result


class ProfilePayload(Payload):
    """The dataset version that is read and described."""

    dataset_version: int


class ProfileResult(Result):
    """The profile of a table, and its digest; the dataset version takes both over."""

    profile: Profile
    digest: str


class ProfileTask(Task):
    """Read an upload (or a bundled set), write it as .npz, describe it."""

    kind: Literal["profile"] = "profile"
    source: Literal["bundled", "csv", "npz", "parquet"]
    path: str | None = None
    bundled: str | None = None
    target: str | None = None
    features: tuple[str, ...] | None = None
    task: str | None = None
