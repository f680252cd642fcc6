"""The task that a runner is given, and the parts that tasks of several kinds share.

A task is the `spec.json` in a runner's folder. It names every file by its path on the worker's machine, never
by a database id; the supervisor has put the files there.
"""

from typing import Any, Literal

from pydantic import Field

from jobs.contracts.base import Frozen


class DatasetFile(Frozen):
    """Where a dataset version's table lies, and its schema as the profile found it."""

    path: str = Field(description="an .npz of named columns written by a profile task")
    digest: str
    profile: dict[str, Any] = Field(description="jobs.contracts.profile.Profile as JSON")


class CheckpointFolder(Frozen):
    """A checkpoint to go on from; the runner verifies the manifest before it trusts it."""

    folder: str
    manifest: str
    step: int


class Task(Frozen):
    """What every kind's task has; each kind adds its own fields and fixes `kind` to its name."""

    kind: str
    version: Literal[1] = 1
    folder: str = Field(description="the attempt's own folder; everything it writes goes below it")
    checkpoints: str = Field(default="", description="where its checkpoint folders go (the store)")
    fence: int = Field(default=1, description="the attempt's number; part of every checkpoint's name")
    threads: int = Field(default=1, ge=1)
    compile_cache: str | None = None

    def resumes_from(self) -> tuple[CheckpointFolder, ...]:
        """Return the checkpoints of the first training still open, newest first."""
        return ()
