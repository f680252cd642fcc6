"""Declares the answers about projects and their members."""

from pydantic import Field

from jobs.answers.base import Answer, Time


class ProjectOut(Answer):
    """A project."""

    slug: str
    name: str
    role: str | None = Field(description="The caller's role.")
    single_person: bool = Field(description="Whether people may approve the requests that they make now.")
    single_person_at: Time | None = Field(
        description="When that rule was last switched on; it stays after the rule is switched off."
    )
    max_slots: int | None = Field(
        description="The quota of slots; null means none. See the quotas of the project."
    )
    created_by: str
    created: Time


class MemberOut(Answer):
    """A member of a project."""

    user: str
    role: str
