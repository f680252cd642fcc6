"""Authenticates requests by bearer token, or by browser session with CSRF token; other requests are a 401."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from django.http import HttpRequest
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from jobs import access
from jobs.actions.people import tokens
from jobs.errors import Forbidden
from jobs.models import ApiToken, User
from webapp.api import throttle
from webapp.http_errors import Unauthenticated

RIGHTS_OF_ADMIN = ("read", "write", "approve", "admin")
SCOPES_OF_SESSIONS = tuple(
    scope for scope in tokens.SCOPES if scope not in {tokens.SERVER_SCOPE, tokens.METRICS_SCOPE}
)
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
TO_MAKE_ADMINISTRATORS = "make an administrator"
TO_ACCEPT_CHANGES = "hand tokens over although their rights change (`accept_changes`)"
PRIVILEGED = frozenset({"approve", "admin"})
"""Scopes of tokens that do nothing while their owner lacks a required second factor."""


@dataclass(frozen=True)
class Caller:
    """The authenticated user, and their token if there is one. A session has all scopes of people."""

    user: User
    token: ApiToken | None = None

    @property
    def key(self) -> str:
        """Return a key for rate limits. Each token that a user has gets its own limit."""
        return f"token {self.token.pk}" if self.token else f"user {self.user.pk}"

    @property
    def scopes(self) -> tuple[str, ...]:
        """Return the scopes that the caller holds."""
        return SCOPES_OF_SESSIONS if self.token is None else tokens.held_scopes(self.token)


def actor(request: HttpRequest) -> User:
    """Return the authenticated user. For use in operations, which run only after authentication."""
    return cast(Caller, request.auth).user  # type: ignore[attr-defined]


def caller(request: HttpRequest) -> Caller:
    """Return the authenticated caller. The credentials are checked once per request.

    Raises:
        Unauthenticated: the credentials are missing or invalid.
    """
    cached = getattr(request, "_caller", None)
    if cached is None:
        # An invalid token is refused even if there is a valid session.
        cached = _by_token(request) or _by_session(request)
        request._caller = cached  # type: ignore[attr-defined]
    return cast(Caller, cached)


def _by_token(request: HttpRequest) -> Caller | None:
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    # Other schemes are not for us: a browser sends a proxy's Basic credentials with every request.
    if scheme.lower() != "bearer":
        return None
    token = tokens.authenticate(secret.strip())
    if token is None:
        fault = tokens.describe_refusal(secret.strip())
        raise Unauthenticated(f"The token is refused: {fault}. Send Authorization: Bearer ty_…")
    request.user = token.user
    return Caller(token.user, token)


def _by_session(request: HttpRequest) -> Caller:
    user = request.user
    if not isinstance(user, User) or not user.is_active:
        raise Unauthenticated("Send Authorization: Bearer ty_…, or log in with the browser.")
    if request.method not in SAFE_METHODS and check_csrf(request) is not None:
        raise Unauthenticated(
            "The session requires its CSRF token in the header X-CSRFToken.", code="csrf_failed"
        )
    return Caller(user)


class Credentials(AuthBase):
    """Requires one of `scopes`. The default is `read` for GET and `write` for other methods."""

    openapi_type = "http"
    openapi_scheme = "bearer"
    openapi_description = "A token made on the page Tokens or by the command `token`."
    # django-ninja's documentation page then sends the CSRF token of the reader's session.
    csrf = True

    def __init__(self, *scopes: str) -> None:
        super().__init__()
        self._scopes = scopes

    def __call__(self, request: HttpRequest) -> Caller:
        """Return the caller.

        Raises:
            Unauthenticated: the credentials are missing or invalid.
            Throttled: the caller sent too many requests.
            Forbidden: the token lacks the scope, or its owner a required second factor.
        """
        who = caller(request)
        # Before the scopes are checked, so that refused requests count as well.
        throttle.consume(who.key)
        needed = self._scopes or (("read",) if request.method in SAFE_METHODS else ("write",))
        held = set(needed) & set(who.scopes)
        if (who.token is None or (held and held <= PRIVILEGED)) and access.lacks_second_factor(who.user):
            raise access.second_factor_required()
        if not held:
            raise Forbidden(_refusal(needed), code="scope_missing")
        return who


def _refusal(needed: Sequence[str]) -> str:
    if tuple(needed) == (tokens.SERVER_SCOPE,):
        return (
            "This is for prediction servers alone, which have credentials of their own: an administrator "
            "makes one with the command `serving-token NAME`."
        )
    return f"The token lacks the scope {' or '.join(needed)}."


def needs(*scopes: str) -> Credentials:
    """Return the authentication for a route that requires one of `scopes`."""
    return Credentials(*scopes)


def prediction_server(request: HttpRequest) -> str:
    """Return the name of the prediction server whose credential a request with the scope `serve` has."""
    token = caller(request).token
    assert token is not None  # noqa: S101 - sessions lack the scope
    return token.name or token.prefix


def require_rights_of_admin(request: HttpRequest, purpose: str) -> None:
    """Check that the caller's credentials may do everything that an administrator may do.

    Otherwise a token with the scope `admin` alone could create an administrator, and log in as that one.

    Args:
        request: the request.
        purpose: what needs these rights, for the refusal: an infinitive, such as "make an administrator".

    Raises:
        Forbidden: the token lacks a scope.
    """
    held = caller(request).scopes
    if missing := [scope for scope in RIGHTS_OF_ADMIN if scope not in held]:
        scopes = f"scope{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
        message = f"To {purpose}, the token also needs the {scopes}."
        raise Forbidden(message, code="scope_missing")
