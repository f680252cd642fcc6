"""Measures how fast the database and the broker answer."""

import time
from collections.abc import Callable
from functools import cache

import redis
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

BROKER_SECONDS = 1.0


def database_seconds() -> float | None:
    """Return how long a simple query takes; None without an answer."""
    began = time.perf_counter()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            cursor.fetchone()
    except (DatabaseError, InterfaceError):
        connection.close()
        return None
    return time.perf_counter() - began


def broker_seconds() -> float | None:
    """Return how long a ping takes; None without an answer."""
    began = time.perf_counter()
    try:
        _client(settings.TRAINYARD_REDIS_URL).ping()
    except (redis.RedisError, OSError):
        return None
    return time.perf_counter() - began


# Kept: a new connection for each scrape would be part of the measurement.
@cache
def _client(url: str) -> "redis.Redis":
    return redis.Redis.from_url(url, socket_timeout=BROKER_SECONDS, socket_connect_timeout=BROKER_SECONDS)


MEASURES: dict[str, Callable[[], float | None]] = {"database": database_seconds, "broker": broker_seconds}
