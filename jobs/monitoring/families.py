"""Makes Prometheus' metric families of figures."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from jobs import program
from jobs.actions import totals
from jobs.queries.runs.figures import Figures


def gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    """Return a gauge without labels."""
    return GaugeMetricFamily(name, text, value=value)


def counter(name: str, text: str, value: float) -> CounterMetricFamily:
    """Return a counter without labels. Its sample's name ends in `_total`."""
    return CounterMetricFamily(name, text, value=value)


def gauges(name: str, text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    """Return a gauge with one label."""
    family = GaugeMetricFamily(name, text, labels=[label])
    for word, value in values.items():
        family.add_metric([word], value)
    return family


def build_info() -> Metric:
    """Return the version of the program."""
    family = GaugeMetricFamily("trainyard_build_info", "The program; always 1.", labels=["version"])
    family.add_metric([program.program_version()], 1)
    return family


def service_families(seconds: Mapping[str, float | None]) -> Iterator[Metric]:
    """Yield whether database and broker answer this process, and how fast."""
    for service, value in seconds.items():
        name = f"trainyard_{service}"
        yield gauge(f"{name}_up", f"Whether the {service} answers this process.", value is not None)
        if value is not None:
            yield gauge(f"{name}_latency_seconds", f"Time of a simple question to the {service}.", value)


def disk_families(folders: Mapping[str, Path]) -> Iterator[Metric]:
    """Yield the disk space of folders."""
    free, size = dict[str, float](), dict[str, float]()
    for name, path in folders.items():
        try:
            usage = shutil.disk_usage(path)
            free[name], size[name] = _available(path), usage.total
        except OSError:
            continue
    yield gauges("trainyard_disk_free_bytes", "Free space for this program.", "folder", free)
    yield gauges("trainyard_disk_size_bytes", "Size of the file system.", "folder", size)


def _available(path: Path) -> int:
    # Without the blocks that are kept for root.
    state = os.statvfs(path)
    return state.f_bavail * state.f_frsize


def figure_families(figures: Figures) -> Iterator[Metric]:
    """Yield the figures of the whole installation. Each web server yields the same."""
    pools = figures.pools
    yield gauges("trainyard_jobs", "Unfinished jobs.", "state", figures.jobs)
    queued = {name: pool.queued for name, pool in pools.items()}
    yield gauges("trainyard_queue_jobs", "Jobs that wait for slots.", "pool", queued)
    oldest = {name: pool.oldest_seconds for name, pool in pools.items()}
    yield gauges("trainyard_queue_oldest_seconds", "How long the first of them waits.", "pool", oldest)
    slots = {name: pool.slots for name, pool in pools.items()}
    yield gauges("trainyard_slots", "Slots of workers that accept work.", "pool", slots)
    busy = {name: pool.busy for name, pool in pools.items()}
    yield gauges("trainyard_slots_busy", "Slots in use.", "pool", busy)
    lag = {name: pool.event_lag_seconds for name, pool in pools.items()}
    yield gauges(
        "trainyard_event_lag_seconds", "Age of the oldest event that is not recorded yet.", "pool", lag
    )
    workers = GaugeMetricFamily("trainyard_workers", "Workers.", labels=["pool", "state"])
    for name, pool in pools.items():
        for state, count in pool.workers.items():
            workers.add_metric([name, state], count)
    yield workers
    yield gauges("trainyard_replicas", "Replicas of endpoints.", "state", figures.replicas)
    yield gauge("trainyard_scheduler_up", "Whether a scheduler has the lease.", figures.has_scheduler)
    yield from _totals(figures)


def _totals(figures: Figures) -> Iterator[Metric]:
    runs = CounterMetricFamily(
        "trainyard_runs_ended", "Attempts that have ended.", labels=["outcome", "reason"]
    )
    results = CounterMetricFamily("trainyard_collections", "Collections of files.", labels=["result"])
    last = 0.0
    for (name, label), total in figures.totals.items():
        if name == totals.RUNS:
            outcome, _, reason = label.partition("/")
            runs.add_metric([outcome, reason], total.value)
        elif name == totals.COLLECTIONS:
            results.add_metric([label], total.value)
            last = max(last, total.changed if label == "completed" else 0.0)
    yield runs
    yield results
    if last:
        yield gauge("trainyard_collection_last_timestamp_seconds", "End of the last collection.", last)
    sums: Iterable[tuple[str, str]] = (
        (totals.COLLECTED_FILES, "Files that collections deleted."),
        (totals.COLLECTED_BYTES, "Bytes that collections deleted."),
    )
    for name, text in sums:
        value = figures.totals[name, ""].value if (name, "") in figures.totals else 0
        yield counter(f"trainyard_{name}", text, value)
