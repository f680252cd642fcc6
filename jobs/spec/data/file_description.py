"""Declares the description of an uploaded file: its format, and where the table is in it."""

from pydantic import Field

from jobs.spec.base import Frozen


class FileDescription(Frozen):
    """The format of a version's file, and the part of it that was read."""

    format: str = Field(description="Such as `CSV` or `Excel workbook`.")
    compression: str | None = Field(default=None, description="Such as `gzip`.")
    archive: str | None = Field(default=None, description="`zip`, `tar` or `tar.gz`, if the table is in one.")
    members: tuple[str, ...] = Field(default=(), description="The files of the archive that were read.")
    sheet: str | None = Field(default=None, description="The sheet of a workbook that was read.")
