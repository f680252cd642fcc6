"""Health checks: `/healthz` for this process, `/readyz` for all required parts."""

from collections.abc import Callable

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from jobs.queries.health import scheduler_is_alive, worker_is_alive


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


PARTS: dict[str, Callable[[], bool]] = {
    "database": _database,
    "broker": _broker,
    "scheduler": scheduler_is_alive,
    "worker": worker_is_alive,
}


def missing_parts() -> list[str]:
    """Return the names of the unavailable parts."""
    missing = []
    for name, is_available in PARTS.items():
        try:
            available = is_available()
        except (DatabaseError, redis.RedisError, OSError):
            available = False
        if not available:
            missing.append(name)
    return missing


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Report that this process runs."""
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Return 200 if the installation can run jobs, else 503 with the unavailable parts."""
    missing = missing_parts()
    if missing:
        response = JsonResponse({"status": "not ready", "missing": missing}, status=503)
        # Django's private mark of a logged response: it would log each 503 of a probe as an error.
        response._has_been_logged = True  # type: ignore[attr-defined]
        return response
    return JsonResponse({"status": "ready"})
