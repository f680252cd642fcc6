"""Declares the answers about people: those of the installation, and the caller."""

from pydantic import Field

from jobs.answers.base import Answer, Time


class PersonOut(Answer):
    """A person."""

    user: str
    admin: bool
    active: bool
    last_login: Time | None
    joined: Time


class InvitedOut(PersonOut):
    """A new person with a login link."""

    login_link: str = Field(description="Logs the person in once.")


class ProjectRoleOut(Answer):
    """A project and the caller's role in it."""

    slug: str
    role: str


class MeOut(Answer):
    """The person to whom the credentials belong."""

    user: str
    admin: bool
    projects: list[ProjectRoleOut]
    scopes: list[str]
