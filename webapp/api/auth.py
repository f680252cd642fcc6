"""Who calls: a Bearer token or a browser session with CSRF. Whatever is missing or bad is a 401."""

from dataclasses import dataclass
from typing import cast

from django.http import HttpRequest
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from jobs.actions import tokens
from jobs.errors import Forbidden
from jobs.models import ApiToken, User
from webapp.api import throttle
from webapp.http_errors import Unauthenticated

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True)
class Caller:
    """A person, and the token they came with; a session has every scope that their roles allow."""

    user: User
    token: ApiToken | None = None

    @property
    def key(self) -> str:
        """Return what tells this caller from all others: each token counts for itself."""
        return f"token {self.token.pk}" if self.token else f"user {self.user.pk}"

    @property
    def scopes(self) -> tuple[str, ...]:
        """Return the scopes that the caller holds."""
        return tokens.SCOPES if self.token is None else tuple(self.token.scopes)


def actor(request: HttpRequest) -> User:
    """Return the person who calls; for use inside operations, which run only after authentication."""
    return cast(Caller, request.auth).user  # type: ignore[attr-defined]


def caller(request: HttpRequest) -> Caller:
    """Return who calls, checking the credentials once a request.

    Raises:
        Unauthenticated: there are none, or they are not good.
    """
    known = getattr(request, "_caller", None)
    if known is None:
        known = _by_token(request) or _by_session(request)
        request._caller = known  # type: ignore[attr-defined]
    return cast(Caller, known)


def _by_token(request: HttpRequest) -> Caller | None:
    header = request.headers.get("Authorization")
    if header is None:
        return None
    scheme, _, secret = header.partition(" ")
    token = tokens.authenticate(secret.strip()) if scheme.lower() == "bearer" else None
    if token is None:
        raise Unauthenticated("The token is unknown, expired or revoked: send Authorization: Bearer ty_…")
    request.user = token.user
    return Caller(token.user, token)


def _by_session(request: HttpRequest) -> Caller:
    user = request.user
    if not isinstance(user, User) or not user.is_active:
        raise Unauthenticated("Send Authorization: Bearer ty_…, or log in with the browser.")
    if request.method not in SAFE_METHODS and check_csrf(request) is not None:
        raise Unauthenticated("The session needs its CSRF token in X-CSRFToken.", code="csrf_failed")
    return Caller(user)


class Credentials(AuthBase):
    """Lets in whoever holds one of `scopes`; without any named, GET needs `read` and the rest `write`."""

    openapi_type = "http"
    openapi_scheme = "bearer"
    openapi_description = "A token made on the page Tokens or by `manage.py token`."
    csrf = True  # the docs page then sends the CSRF token of the reader's own session

    def __init__(self, *scopes: str) -> None:
        super().__init__()
        self._scopes = scopes

    def __call__(self, request: HttpRequest) -> Caller:
        """Return the caller, or raise what keeps them out."""
        who = caller(request)
        throttle.take(who.key)
        wanted = self._scopes or (("read",) if request.method in SAFE_METHODS else ("write",))
        if not set(wanted) & set(who.scopes):
            raise Forbidden(f"The token lacks the scope {' or '.join(wanted)}.", code="scope_missing")
        return who


def needs(*scopes: str) -> Credentials:
    """Return the authentication of a route that asks for one of `scopes`."""
    return Credentials(*scopes)
