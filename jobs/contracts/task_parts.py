"""Declares the base class of runner tasks and the parts that several kinds of tasks share.

A task is stored as `spec.json` in a runner's folder. It refers to files by paths on the worker's machine, not
by database ids. The supervisor has placed the files there.
"""

from typing import Any, Literal

from pydantic import Field

from jobs.contracts.base import Frozen


class DatasetFile(Frozen):
    """The table of a data set version, with its profile."""

    path: str = Field(description="an .npz of named columns written by a profile task")
    digest: str
    profile: dict[str, Any] = Field(description="jobs.contracts.profile.Profile as JSON")


class CheckpointFolder(Frozen):
    """A checkpoint to resume from. The runner verifies its manifest first."""

    folder: str
    manifest: str
    step: int


class Task(Frozen):
    """The fields of every task. Each kind adds fields and sets `kind` to its name."""

    kind: str
    version: Literal[1] = 1
    folder: str = Field(description="the folder of the attempt; all its output is written there")
    checkpoints: str = Field(default="", description="the folder in the store for its checkpoints")
    fence: int = Field(default=1, description="the attempt's number; part of every checkpoint's name")
    threads: int = Field(default=1, ge=1)
    compile_cache: str | None = None

    def resumes_from(self) -> tuple[CheckpointFolder, ...]:
        """Return the checkpoints of the first training still open, newest first."""
        return ()
