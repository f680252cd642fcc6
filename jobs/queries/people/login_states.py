"""Reads whether people have logged in, and what became of their newest login links."""

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from django.db.models import Max

from jobs import clock
from jobs.models import LoginLink, User


class LoginKind(StrEnum):
    """A state of a person's login or link."""

    LOGGED_IN = "logged in"
    UNUSED = "not yet used"
    USED = "used"
    EXPIRED = "expired"
    VOID = "void"
    NONE = "none"


class LoginState(NamedTuple):
    """A person's login, or their newest login link if they have not logged in since it was made.

    Attributes:
        kind: the state.
        when: the time of the last login; of a link, when it ends, ended or was used.
    """

    kind: LoginKind
    when: datetime | None = None


def login_states(people: Collection[User]) -> dict[int, LoginState]:
    """Return the login state of each account, by its id."""
    newest = LoginLink.objects.filter(user__in=[user.pk for user in people]).values("user")
    links = LoginLink.objects.select_related("issuer").in_bulk(
        list(newest.annotate(newest=Max("pk")).values_list("newest", flat=True))
    )
    by_user = {link.user_id: link for link in links.values()}
    return {user.pk: _state(user, by_user.get(user.pk)) for user in people}


def _state(user: User, link: LoginLink | None) -> LoginState:
    last = user.last_login
    if last is not None and (link is None or link.used is not None or last > link.created):
        return LoginState(LoginKind.LOGGED_IN, last)
    if link is None:
        return LoginState(LoginKind.NONE)
    if link.used is not None:
        return LoginState(LoginKind.USED, link.used)
    if link.expires <= clock.estimate():
        return LoginState(LoginKind.EXPIRED, link.expires)
    # A link ends with the right of its maker, as `find_login_link` decides.
    if link.issuer is not None and not (link.issuer.is_active and link.issuer.is_superuser):
        return LoginState(LoginKind.VOID, link.expires)
    return LoginState(LoginKind.UNUSED, link.expires)
