"""Health checks: `/healthz` for this process, `/readyz` for all required parts."""

import threading
from collections.abc import Callable
from concurrent.futures import Future

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from jobs.queries import compatibility
from jobs.queries.runs.health import scheduler_is_alive, worker_is_alive
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


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Report that this process runs."""
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Return 200 if the installation can run jobs, else 503 with the unavailable parts."""
    missing = _check.missing_parts()
    if missing:
        response = JsonResponse({"status": "not ready", "missing": missing}, status=503)
        # Django's private mark of a logged response: it would log each 503 of a probe as an error.
        response._has_been_logged = True  # type: ignore[attr-defined]
        return response
    return JsonResponse({"status": "ready"})
