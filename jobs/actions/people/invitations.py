"""Invites people to a project: one act makes the account, the role and the login link."""

from typing import NamedTuple

from django.db import transaction

from jobs import access
from jobs.access import Action
from jobs.actions.people.people import add_person, create_login_link, find_person, set_role
from jobs.errors import NotFound
from jobs.models import Project, Role, User
from jobs.queries.people.people import people_accounts


class Invitation(NamedTuple):
    """A person who was added or invited.

    Attributes:
        person: the account.
        link: the path of the login link; None for a person who had an account.
    """

    person: User
    link: str | None


def add_or_invite(project: Project, username: str, role: Role, *, by: User) -> Invitation:
    """Give a person a role in a project. A new name gets an account and a login link.

    Raises:
        Forbidden: `by` does not manage the project.
        NotFound: the account is deactivated, or there is none and `by` may not create one.
        BadInput: the name has characters that no user name has.
        Conflict: the project would have no admin.
    """
    access.require(by, project, Action.MANAGE)
    if people_accounts().filter(username=username).exists():
        person = find_person(username)
        set_role(project, person, role, by=by)
        return Invitation(person, None)
    if not by.is_superuser:
        raise NotFound(
            f"There is no person {username!r}. New people are invited by administrators of the installation."
        )
    return invite(username, by=by, project=project, role=role)


def invite(
    username: str, *, by: User, project: Project | None = None, role: Role = Role.MEMBER, admin: bool = False
) -> Invitation:
    """Create an account with a login link, and with a role in a project if one is named.

    Raises:
        Forbidden: `by` is no administrator of the installation.
        BadInput: the name has characters that no user name has.
        Conflict: the name is taken.
    """
    with transaction.atomic():
        person = add_person(username, by=by, admin=admin)
        if project is not None:
            set_role(project, person, role, by=by)
        return Invitation(person, create_login_link(person, by=by))
