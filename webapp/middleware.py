"""Middleware: headers for every response, and the log of requests."""

import time
from collections.abc import Callable

import structlog
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject

from jobs.logs import outages
from jobs.logs.request_ids import HEADER, request_id
from jobs.logs.sampling import Sampler
from jobs.models import User
from webapp.accounts.login import issuers_of
from webapp.metrics import count_request

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
# Not logged as failed: they return 503 while a part starts or is away, and the monitor reports it.
NOT_FAILED = ("/readyz", "/metrics")
# Not logged as slow: they wait while the web server starts, and the supervisor measures them.
PROBES = ("/healthz", "/livez", *NOT_FAILED)
# Files that every page needs, and that no one looks for in a log.
UNLOGGED = "/static/"


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
        # For the log, which must not be the reason to load it.
        request.loaded_user = user  # type: ignore[attr-defined]
    return user


def probes_by_address(handler: Handler) -> Handler:
    """Answer probes and scrapes whatever their host: they ask by the address of a machine or container.

    Their answers do not depend on the host, so a wrong one is harmless.
    """

    def respond(request: HttpRequest) -> HttpResponse:
        if request.path_info in PROBES:
            request.META["HTTP_HOST"] = "localhost"
        return handler(request)

    return respond


def request_log(handler: Handler) -> Handler:
    """Count requests, and log a share of them, and all that are slow or failed. Each has an id."""
    sampler = Sampler(settings.TRAINYARD_ACCESS_LOG)

    def respond(request: HttpRequest) -> HttpResponse:
        # A thread handles many requests; the variables of its last one are still set.
        structlog.contextvars.clear_contextvars()
        outages.noted.set(None)
        number = request_id(request.headers.get(HEADER))
        structlog.contextvars.bind_contextvars(request=number)
        begin = time.perf_counter()
        response = handler(request)
        seconds = time.perf_counter() - begin
        response.headers[HEADER] = number
        count_request(request.method or "", request.path_info, response.status_code, seconds)
        _log(request, response.status_code, seconds, sampler)
        return response

    return respond


def _log(request: HttpRequest, status: int, seconds: float, sampler: Sampler) -> None:
    failed = status >= SERVER_ERROR and request.path_info not in NOT_FAILED
    slow = seconds > SLOW_SECONDS and request.path_info not in (LONG_POLL, *PROBES)
    is_omitted = request.path_info in PROBES or request.path_info.startswith(UNLOGGED)
    if not (failed or slow or (not is_omitted and sampler.chooses())):
        return
    fields: dict[str, object] = {
        "method": request.method,
        # Without the query, which may have secrets.
        "path": request.path,
        "status": status,
        "ms": round(seconds * 1000, 1),
        "address": request.META.get("REMOTE_ADDR", ""),
    }
    if (user := _user_id(request)) is not None:
        fields["user"] = user
    job = request.resolver_match.kwargs.get("job_id") if request.resolver_match else None
    if job is not None:
        fields["job"] = job
    if failed and outages.noted.get() is not None:
        fields["outage"] = outages.noted.get()
    (log.warning if failed or slow else log.info)("request", **fields)


def _user_id(request: HttpRequest) -> int | None:
    """Return the user whose credentials were checked; nothing is read from the database for the log."""
    caller = getattr(request, "_caller", None)
    user = caller.user if caller is not None else getattr(request, "loaded_user", None)
    return user.pk if isinstance(user, User) else None
