"""Collects a part's metrics at a scrape, and writes them in Prometheus' text format."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from jobs.monitoring.families import build_info, disk_families, figure_families, service_families
from jobs.monitoring.services import MEASURES
from jobs.queries.runs.figures import read_figures
from jobs.store import store

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
CACHED_SECONDS = 5.0
"""Two monitors, and several web servers' scrapes at one time, cost the queries of one."""

type Families = Callable[[], Iterable[Metric]]


class Cached:
    """Calls a function at most every few seconds. Callers that come meanwhile wait for its result.

    Args:
        read: the function.
        seconds: how long its result is used.
    """

    def __init__(self, read: Families, seconds: float = CACHED_SECONDS) -> None:
        self._read, self._seconds = read, seconds
        self._lock = threading.Lock()
        self._result: list[Metric] = []
        self._read_at = float("-inf")

    def __call__(self) -> list[Metric]:
        """Return the families."""
        with self._lock:
            if time.monotonic() - self._read_at >= self._seconds:
                self._result = list(self._read())
                self._read_at = time.monotonic()
            return self._result


class _Collector:
    def __init__(self, families: Families) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families()

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the registry then accepts families whose names are not known yet."""
        return ()


class Exposition:
    """The metrics of one process.

    Args:
        families: those of its part.
        registry: has the counters that its part increases; by default a new one.
    """

    def __init__(self, *families: Families, registry: CollectorRegistry | None = None) -> None:
        self._registry = registry or CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        for one in (common_families, *families):
            self._registry.register(_Collector(one))

    def text(self) -> bytes:
        """Return all metrics in the text format."""
        return generate_latest(self._registry)


def common_families() -> Iterator[Metric]:
    """Yield the metrics of every part that has a database."""
    yield build_info()
    yield from _services()
    yield from disk_families(_folders())


def _folders() -> Mapping[str, Path]:
    folders = {"home": Path(settings.TRAINYARD_HOME), "checkpoints": store().checkpoint_root}
    if "://" not in settings.TRAINYARD_ARTIFACTS:
        folders["artifacts"] = Path(settings.TRAINYARD_ARTIFACTS)
    return folders


def _measure_services() -> Iterator[Metric]:
    yield from service_families({name: measure() for name, measure in MEASURES.items()})


def _read_installation() -> Iterator[Metric]:
    try:
        figures = read_figures()
    # `trainyard_database_up` is 0 then. Earlier figures would look like present ones.
    except (DatabaseError, InterfaceError):
        connections.close_all()
        return iter(())
    return figure_families(figures)


_services = Cached(_measure_services)
installation_families = Cached(_read_installation)
"""The figures of the whole installation."""
