"""The metrics of the web server. Its counters begin with the process."""

from functools import cache

from prometheus_client import CollectorRegistry, Counter, Histogram

from jobs.monitoring.exposition import CONTENT_TYPE as CONTENT_TYPE
from jobs.monitoring.exposition import Exposition, installation_families

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
KINDS = {"/api/": "api", "/static/": "static", "/docs": "docs"}
"""Beginnings of paths; all others are pages. Clients choose paths, which would be any number of labels."""

_registry = CollectorRegistry()
_requests = Counter(
    "trainyard_http_requests", "Requests that were answered.", ["method", "status"], registry=_registry
)
_seconds = Histogram(
    "trainyard_http_request_seconds",
    "Time from a request to its response.",
    ["kind"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    registry=_registry,
)


def count_request(method: str, path: str, status: int, seconds: float) -> None:
    """Count one request."""
    _requests.labels(method if method in METHODS else "other", str(status)).inc()
    kind = next((name for start, name in KINDS.items() if path.startswith(start)), "page")
    _seconds.labels(kind).observe(seconds)


def text() -> bytes:
    """Return the metrics of this process and of the installation in Prometheus' text format."""
    return _exposition().text()


@cache
def _exposition() -> Exposition:
    return Exposition(installation_families, registry=_registry)
