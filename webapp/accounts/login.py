"""The one login: every way in checks its secrets and ends here.

Passwords are checked by `Backend`, codes by the forms beside this module, links by their page. `Backend` and
the forms count attempts in `jobs.actions.people.logins`. allauth asks for the second factor, then its adapter
calls `complete`.
"""

from typing import Any

from allauth.account.auth_backends import AuthenticationBackend
from allauth.account.internal.flows.login import get_authentication_records
from allauth.account.utils import perform_login
from django.contrib.auth.backends import BaseBackend
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest, HttpResponse

from jobs import clock
from jobs.actions.people import logins
from jobs.models import LoginLink, User
from jobs.queries.people.people import active_user

LINK_ISSUERS = "login_link_issuer"
"""Key in the session: the ids of the issuers of the link that it came from, or of the session in which the
password was set with which it began."""
LOGIN = "login"
"""Key in the session: when, how and from where the user logged in."""
AGENT_CHARACTERS = 200


class Backend(AuthenticationBackend):  # type: ignore[misc] # allauth has no types
    """Checks passwords. Each check is an attempt, whichever page or program asks for it."""

    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> User | None:
        """Return the user with this name and password, or None.

        Raises:
            TooManyAttempts: the delay after earlier attempts has not passed.
        """
        name, password = credentials.get("username"), credentials.get("password")
        if not name or not password:
            return None
        with logins.attempt("password", name, address=address_of(request)) as attempt:
            user: User | None = super().authenticate(request, username=name, password=password)
            if user is not None:
                attempt.succeed()
        return user

    def get_user(self, user_id: int) -> User | None:
        """Return a session's user; None if the account is not active."""
        return active_user(user_id)

    # That of Django's backend has a query of its own; this calls the method above in a thread.
    aget_user = BaseBackend.aget_user


def address_of(request: HttpRequest | None) -> str:
    """Return the client's address; the web server has replaced a trusted proxy's one."""
    return "" if request is None else str(request.META.get("REMOTE_ADDR", ""))


def issuers_of(session: SessionBase) -> frozenset[int]:
    """Return the ids of a session's issuers; see `User.login_issuers`."""
    stored = session.get(LINK_ISSUERS, [])
    # Sessions of earlier versions have one id.
    return frozenset([stored] if isinstance(stored, int) else stored)


def by_link(request: HttpRequest, link: LoginLink, to: str) -> HttpResponse:
    """Log in the user whose link was just used. A second factor is still required if the user has one."""
    # Kept until the second factor is checked, and then passed to `complete`.
    passed = {"by_link": True, "link_issuers": link.issuers}
    response: HttpResponse = perform_login(
        request, link.user, email_verification="none", redirect_url=to, signal_kwargs=passed
    )
    return response


def complete(request: HttpRequest, user: User, passed: dict[str, Any] | None) -> None:
    """Record a complete login in the session and in the audit log.

    Args:
        request: the request, whose session belongs to the user now.
        user: the user.
        passed: the arguments that `by_link` gave; None after a password.
    """
    passed = passed or {}
    if passed.get("by_link"):
        issuers = passed["link_issuers"]
    else:
        issuers = list(user.password_issuers.order_by("pk").values_list("pk", flat=True))
    request.session.pop(LINK_ISSUERS, None)
    if issuers:
        request.session[LINK_ISSUERS] = issuers
    user.login_issuers = frozenset(issuers)  # for the audit log
    how = "link" if passed.get("by_link") else "password"
    records = get_authentication_records(request, user)
    address = address_of(request)
    request.session[LOGIN] = {
        "time": clock.estimate().isoformat(),
        "how": how,
        "address": address,
        "agent": request.headers.get("User-Agent", "")[:AGENT_CHARACTERS],
    }
    second_factor = any(record.get("method") == "mfa" for record in records)
    logins.record_login(user, address=address, how=how, second_factor=second_factor)
