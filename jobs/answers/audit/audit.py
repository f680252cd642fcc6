"""Declares the answers about the audit log: its events, and a verification's result."""

from typing import Literal

from pydantic import Field

from jobs.answers.base import Answer, Stored, Time
from jobs.spec.json_types import JsonObject


class AuditEventOut(Answer):
    """One row of the audit log."""

    id: int
    number: int = Field(description="Counts the rows from 1 without gaps.")
    time: Time
    actor: str | None = Field(description="Null for the installation itself.")
    action: str
    target: str
    project: str | None
    detail: Stored[JsonObject]
    previous_hash: str
    hash: str = Field(description="Covers all other fields, also the hash of the row before it.")


class MissingOut(Answer):
    """Rows that were deleted."""

    first: int
    last: int


class VerifiedOut(Answer):
    """Whether the audit log is intact, and how it is not."""

    holds: bool
    state: Literal[
        "valid",
        "changed",
        "gap",
        "truncated",
        "head_changed",
        "other_key",
        "release_changed",
        "unverified",
    ] = Field(description="`other_key`: the secret key was replaced. `unverified`: broken before an upgrade.")
    message: str
    broken: int | None = Field(
        description="The id of the first wrong row or of the row after a gap; after the last row if later "
        "ones are missing."
    )
    missing: MissingOut | None = Field(description="The numbers of the missing rows.")
    count: int = Field(description="The rows that were read.")
    notes: list[str] = Field(description="Parts of the log that were accepted although they did not verify.")
