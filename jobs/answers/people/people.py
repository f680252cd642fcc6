"""Declares the answers about people: those of the installation, and the caller."""

from pydantic import Field

from jobs.answers.base import Answer, Time
from jobs.answers.people.tokens import TokenOut


class PersonOut(Answer):
    """A person."""

    user: str
    admin: bool
    active: bool
    max_slots: int | None = Field(
        description="How many slots the person's jobs may hold at once; null means no limit."
    )
    last_login: Time | None
    joined: Time


class ChangedPersonOut(PersonOut):
    """A person whose account was changed, with the tokens that stop or work with it."""

    kept_tokens: list[TokenOut] = Field(
        description="With `active`: the person's tokens that are kept and have not expired. They stop while "
        "the account is deactivated, and work again after a reactivation."
    )
    note: str = Field(description="A sentence on the kept tokens, for people; empty without any.")


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
