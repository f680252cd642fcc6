"""Health checks: `/healthz` and `/livez` for this process, `/readyz` for all required parts, `/metrics`."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from http import HTTPStatus

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from jobs.monitoring.scrape_access import ALLOWED, REFUSALS, ScrapeAccess
from jobs.monitoring.status import PART_NAMES, unknown_parts
from jobs.queries import compatibility
from jobs.queries.runs.health import scheduler_is_alive, worker_is_alive
from webapp import metrics
from webapp.ops.shared_results import settle


def _database() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        return bool(cursor.fetchone())


def _broker() -> bool:
    client = redis.Redis.from_url(settings.TRAINYARD_REDIS_URL, socket_timeout=1, socket_connect_timeout=1)
    try:
        return bool(client.ping())
    finally:
        client.close()


# Seconds that a caller waits for the check that another one started.
SHARED_WAIT = 5.0

PARTS: dict[str, Callable[[], bool]] = {
    "database": _database,
    "broker": _broker,
    "scheduler": scheduler_is_alive,
    "worker": worker_is_alive,
    "version": lambda: compatibility.problem() is None,
}


class SharedCheck:
    """Checks the parts once for all callers that ask at the same time.

    A part that hangs would otherwise hold one thread and one connection for each caller.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Future[list[str]] | None = None
        self._present = ""

    def missing_parts(self) -> list[str]:
        """Return the unavailable parts' names."""
        with self._lock:
            is_first = self._running is None
            running = self._running = self._running or Future()
        if is_first:
            self._run(running)
        try:
            return running.result(SHARED_WAIT)
        except TimeoutError:
            return [self._present]

    def _run(self, running: Future[list[str]]) -> None:
        try:
            settle(running, lambda: [name for name in PARTS if not self._is_available(name)])
        finally:
            with self._lock:
                self._running = None

    def _is_available(self, name: str) -> bool:
        self._present = name
        try:
            return PARTS[name]()
        except (DatabaseError, redis.RedisError, OSError):
            return False


_check = SharedCheck()
_access = ScrapeAccess()


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Report that this process answers: its event loop, and a thread for a request. Also at `/livez`."""
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """Return 200 if the installation can run jobs, else 503 with the unavailable parts.

    With `?without=worker` it can be ready without this part, for a load balancer in front of web servers
    whose workers are started on demand.
    """
    left_out = request.GET.getlist("without")
    if (unknown := unknown_parts(left_out)) is not None:
        detail = f"{unknown!r} is no part: give one of {', '.join(PART_NAMES)}"
        return JsonResponse({"status": "not ready", "errors": {"without": detail}}, status=422)
    missing = [name for name in _check.missing_parts() if name not in left_out]
    if missing:
        response = JsonResponse({"status": "not ready", "missing": missing}, status=503)
        # Django's private mark of a logged response: it would log each 503 of a probe as an error.
        response._has_been_logged = True  # type: ignore[attr-defined]
        return response
    return JsonResponse({"status": "ready"})


@require_safe
@never_cache
def scrape(request: HttpRequest) -> HttpResponse:
    """Return the metrics of this process and of the installation to tokens with the scope `metrics`."""
    status = _access.status(request.headers.get("Authorization", ""))
    if status != ALLOWED:
        refusal = JsonResponse({"detail": REFUSALS[status]}, status=status)
        if status == HTTPStatus.UNAUTHORIZED:
            refusal["WWW-Authenticate"] = 'Bearer realm="trainyard"'
        refusal._has_been_logged = True  # type: ignore[attr-defined] # as above
        return refusal
    return HttpResponse(metrics.text(), content_type=metrics.CONTENT_TYPE)
