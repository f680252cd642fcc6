"""Makes a login link and shows it once."""

from datetime import timedelta
from typing import NamedTuple

from django.http import HttpResponse

from jobs.actions.people import people as actions
from jobs.actions.people.invitations import Invitation
from jobs.models import User
from jobs.public_path import beside_public_path
from webapp.pages.shortcuts import Request


class LoginLinkMade(NamedTuple):
    """A new login link, its user, and its life in hours."""

    user: User
    link: str
    hours: int


def link_of(request: Request, invitation: Invitation) -> LoginLinkMade | None:
    """Return an invitation's link as an address; None if the person had an account."""
    return None if invitation.link is None else _shown(request, invitation.person, invitation.link)


def new_link(request: Request, user: User) -> LoginLinkMade:
    """Create a login link for a user."""
    return _shown(request, user, actions.create_login_link(user, by=request.user))


def keep_secret(response: HttpResponse) -> HttpResponse:
    """Keep a page with a link, which logs its holder in, out of caches."""
    response["Cache-Control"] = "no-store"
    return response


def _shown(request: Request, user: User, path: str) -> LoginLinkMade:
    hours = actions.LINK_LIFE // timedelta(hours=1)
    return LoginLinkMade(user, request.build_absolute_uri(beside_public_path(path)), hours)
