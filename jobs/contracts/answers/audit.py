"""Declares the answers about the audit log: its events, and the result of a verification."""

from pydantic import Field

from jobs.contracts.answers.base import Answer, JsonObject, Stored, Time


class AuditEventOut(Answer):
    """One row of the audit log."""

    id: int
    time: Time
    actor: str | None = Field(description="Null for the installation itself.")
    action: str
    target: str
    project: str | None
    detail: Stored[JsonObject]
    previous_hash: str
    hash: str = Field(description="Covers the row and the hash of the row before it.")


class VerifiedOut(Answer):
    """Whether the audit log is intact."""

    holds: bool
    broken: int | None = Field(description="The first row whose hash is wrong.")
    count: int
