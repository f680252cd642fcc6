"""Declares the answers about projects and their members."""

from pydantic import Field

from jobs.contracts.answers.base import Answer, Time


class ProjectOut(Answer):
    """A project."""

    slug: str
    name: str
    role: str | None = Field(description="The caller's role.")
    single_person: bool = Field(description="Whether people may approve their own requests.")
    max_slots: int | None = Field(description="The quota of slots; null means none.")
    created_by: str
    created: Time


class MemberOut(Answer):
    """A member of a project."""

    user: str
    role: str
