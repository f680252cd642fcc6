"""Middleware: headers for every response, and a log with slow and failed requests."""

import time
from collections.abc import Callable

import structlog
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject

from jobs.models import User
from webapp.accounts.login import issuers_of

Handler = Callable[[HttpRequest], HttpResponse]
log = structlog.get_logger(__name__)

# No page uses these features, so an injected script must not either.
POLICY = ", ".join(
    f"{feature}=()"
    for feature in ("camera", "microphone", "geolocation", "payment", "usb", "display-capture")
)
ACCOUNT_PAGES = "/accounts/"
SLOW_SECONDS = 1.0
SERVER_ERROR = 500
# Not logged as slow: it waits for the next release.
LONG_POLL = "/api/v1/serving/releases"
# Not logged as failed: it returns 503 while a part starts, and the monitor reports it.
PROBE = "/readyz"
# Not logged as slow: they wait while the web server starts, and the supervisor measures them.
PROBES = ("/healthz", PROBE)


def permissions_policy(handler: Handler) -> Handler:
    """Disable browser features that no page uses."""

    def respond(request: HttpRequest) -> HttpResponse:
        response = handler(request)
        response.headers.setdefault("Permissions-Policy", POLICY)
        return response

    return respond


def private_responses(handler: Handler) -> Handler:
    """Keep responses out of shared caches, and have browsers ask again before they show a stored one.

    Pages with secrets set `no-store` themselves; the account's pages do not, because allauth makes them.
    """

    def respond(request: HttpRequest) -> HttpResponse:
        response = handler(request)
        value = "no-store" if request.path_info.startswith(ACCOUNT_PAGES) else "private, no-cache"
        response.headers.setdefault("Cache-Control", value)
        return response

    return respond


def login_issuers(handler: Handler) -> Handler:
    """Add to a session's user its issuers."""

    def respond(request: HttpRequest) -> HttpResponse:
        unmarked = request.user
        # Lazy, since most requests by token never load a session.
        request.user = SimpleLazyObject(lambda: _with_issuers(request, unmarked))  # type: ignore[assignment] # acts as a user
        return handler(request)

    return respond


def _with_issuers(request: HttpRequest, user: AnonymousUser | User) -> AnonymousUser | User:
    if isinstance(user, User):
        user.login_issuers = issuers_of(request.session)
    return user


def request_log(handler: Handler) -> Handler:
    """Log slow and failed requests only."""

    def respond(request: HttpRequest) -> HttpResponse:
        # A thread handles many requests; the variables of its last one are still set.
        structlog.contextvars.clear_contextvars()
        begin = time.perf_counter()
        response = handler(request)
        seconds = time.perf_counter() - begin
        failed = response.status_code >= SERVER_ERROR and request.path_info != PROBE
        slow = seconds > SLOW_SECONDS and request.path_info not in (LONG_POLL, *PROBES)
        if failed or slow:
            log.warning(
                "request",
                method=request.method,
                path=request.path,
                status=response.status_code,
                seconds=round(seconds, 3),
            )
        return response

    return respond
