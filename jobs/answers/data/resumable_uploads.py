"""Declares the answers about uploads that arrive in parts."""

from pydantic import Field

from jobs.answers.base import Answer, Time


class ResumableUploadOut(Answer):
    """A file that arrives in parts by the tus protocol."""

    id: str = Field(description="Give it as `upload` when you create a data set or a version.")
    project: str
    file: str
    length: int = Field(description="Bytes of the whole file.")
    offset: int = Field(description="Bytes received.")
    created_by: str
    created: Time
    expires: Time = Field(description="When it is deleted unless a further part arrives.")
