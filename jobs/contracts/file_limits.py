"""Declares the limits of a task that reads an uploaded file: how large its content may become."""

from pydantic import Field

from jobs.contracts.base import Frozen

GIB = 2**30


class FileLimits(Frozen):
    """The limits of a task that reads a file from outside. Sizes are counted before memory is allocated."""

    expanded_bytes: int = Field(default=2 * GIB, ge=1, description="bytes of the unpacked and encoded data")
    columns: int = Field(default=20_000, ge=1, description="columns of a table, or arrays of an archive")
    text_characters: int = Field(default=1_000_000, ge=1, description="characters of one text of a table")


DEFAULT_LIMITS = FileLimits()
