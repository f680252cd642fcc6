"""Declares how large an uploaded file's content may become in the task that reads it."""

from typing import Self

from pydantic import Field

from jobs.spec.base import Frozen

GIB = 2**30


class FileLimits(Frozen):
    """The limits for a task that reads a file from outside. Sizes are counted before memory is allocated."""

    expanded_bytes: int = Field(default=2 * GIB, ge=1, description="bytes of the data in memory")
    table_bytes: int = Field(
        default=8 * GIB,
        ge=1,
        description="bytes of a large table, which is read in parts, and of its encoded rows",
    )
    columns: int = Field(default=20_000, ge=1, description="columns of a table, or arrays of an archive")
    text_characters: int = Field(default=1_000_000, ge=1, description="characters of one text of a table")

    def of_large_tables(self) -> Self:
        """Return the limits for a table whose columns are in files and not in memory."""
        return self.model_copy(update={"expanded_bytes": max(self.expanded_bytes, self.table_bytes)})


DEFAULT_LIMITS = FileLimits()
