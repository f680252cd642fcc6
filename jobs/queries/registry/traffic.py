"""Reads the requests to an endpoint over time and by replica, and the versions in production."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from django.db.models import Min, QuerySet, Sum

from jobs import clock
from jobs.answers.registry.traffic import (
    ReplicaTraffic,
    ServedVersion,
    TrafficFigures,
    TrafficOut,
    TrafficPoint,
)
from jobs.messages.histogram import percentile
from jobs.messages.traffic import INTERVAL_SECONDS, Counts, Tally
from jobs.models import Endpoint, TrafficCount
from jobs.queries.registry import releases

RANGES = {
    "15m": (900, 10),
    "1h": (3600, 10),
    "6h": (6 * 3600, 60),
    "1d": (86_400, 300),
    "7d": (7 * 86_400, 3600),
    "30d": (30 * 86_400, 3 * 3600),
}
"""The seconds in each range and in its points, which are at least as long as stored intervals that old."""

LATE_SECONDS = 2.0
"""Reports about an interval arrive within this time after its end."""

RECENT = timedelta(minutes=1)


@dataclass
class _Sum:
    """The counts at one point, in total and by version."""

    tally: Tally = field(default_factory=Tally)
    versions: Counter[int] = field(default_factory=Counter)

    def add(self, version: int, requests: int, counts: Counts) -> None:
        self.tally.add(counts)
        self.versions[version] += requests

    def merge(self, other: "_Sum") -> None:
        self.tally.add(other.tally)
        self.versions.update(other.versions)


def traffic_of_endpoint(endpoint: Endpoint, range_: str, *, version: int | None = None) -> TrafficOut:
    """Return an endpoint's traffic in the range that ends now.

    Args:
        endpoint: the endpoint.
        range_: a key in `RANGES`.
        version: only requests to this version.
    """
    seconds, step = RANGES[range_]
    end = _last_complete()
    # Points begin at multiples of their length, so that they keep their counts while time passes.
    first = (end - seconds) // step * step
    rows = _counts_between(endpoint, first, end)
    if version is not None:
        rows = rows.filter(version=version)
    points: defaultdict[int, _Sum] = defaultdict(_Sum)
    for row in rows.iterator():
        points[int(row.start.timestamp()) // step * step].add(row.version, row.requests, row.counts)
    total = _Sum()
    for point in points.values():
        total.merge(point)
    return TrafficOut(
        endpoint=endpoint.model.name,
        begin=_datetime_at(first),
        end=_datetime_at(end),
        step_seconds=step,
        since=_all_counts(endpoint).aggregate(since=Min("start"))["since"],
        total=TrafficFigures(**_traffic_figures(total, end - first)),
        points=[
            TrafficPoint(
                at=_datetime_at(at), **_traffic_figures(points.get(at) or _Sum(), min(step, end - at))
            )
            for at in range(first, end, step)
        ],
        served=served_versions(endpoint, since=_datetime_at(first)),
        replicas=traffic_by_replica(endpoint),
    )


def _last_complete() -> int:
    now = clock.estimate().timestamp() - LATE_SECONDS
    return int(now // INTERVAL_SECONDS) * INTERVAL_SECONDS


def _datetime_at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _all_counts(endpoint: Endpoint) -> QuerySet[TrafficCount]:
    return TrafficCount.objects.filter(replica__endpoint=endpoint)


def _counts_between(endpoint: Endpoint, first: int, end: int) -> QuerySet[TrafficCount]:
    return _all_counts(endpoint).filter(start__gte=_datetime_at(first), start__lt=_datetime_at(end))


def _traffic_figures(sums: _Sum, seconds: int) -> dict[str, object]:
    tally = sums.tally
    requests, batches = tally.succeeded + tally.failed, sum(tally.batches.values())
    largest = percentile(tally.batches, 0.95)
    return {
        "seconds": seconds,
        "requests": requests,
        "failed": tally.failed,
        "errors": {str(status): count for status, count in sorted(tally.errors.items())},
        "versions": {str(version): count for version, count in sorted(sums.versions.items())},
        "requests_per_second": round(requests / seconds, 4) if seconds else 0.0,
        "p50_ms": _latency_ms(tally, 0.5),
        "p95_ms": _latency_ms(tally, 0.95),
        "p99_ms": _latency_ms(tally, 0.99),
        "batches": batches,
        "rows": tally.rows,
        "batch_mean": round(tally.rows / batches, 3) if batches else None,
        "batch_p95": None if largest is None else round(largest),
        "waiting": tally.waiting,
    }


def _latency_ms(tally: Tally, share: float) -> float | None:
    microseconds = percentile(tally.latency, share)
    return None if microseconds is None else float(f"{microseconds / 1000:.4g}")


def has_traffic(endpoint: Endpoint) -> bool:
    """Return whether any request to an endpoint is counted."""
    return _all_counts(endpoint).exists()


def traffic_by_replica(endpoint: Endpoint) -> list[ReplicaTraffic]:
    """Count the last complete minute's requests by replica. Replicas without requests are left out."""
    end = _last_complete()
    seconds = int(RECENT.total_seconds())
    rows = _counts_between(endpoint, end - seconds, end).values("replica__name")
    sums = rows.annotate(asked=Sum("requests"), refused=Sum("failed")).order_by("replica__name")
    return [
        ReplicaTraffic(
            name=row["replica__name"],
            requests=row["asked"],
            failed=row["refused"],
            requests_per_second=round(row["asked"] / seconds, 4),
        )
        for row in sums
    ]


def recent_rates(endpoints: Iterable[Endpoint]) -> dict[int, tuple[float, float]]:
    """Return the requests per second and the share that failed in the last minute, by endpoint."""
    end, seconds = _last_complete(), int(RECENT.total_seconds())
    recent = TrafficCount.objects.filter(
        replica__endpoint__in=list(endpoints),
        start__gte=_datetime_at(end - seconds),
        start__lt=_datetime_at(end),
    )
    sums = recent.values("replica__endpoint").annotate(asked=Sum("requests"), refused=Sum("failed"))
    return {
        row["replica__endpoint"]: (row["asked"] / seconds, row["refused"] / row["asked"])
        for row in sums.order_by()
        if row["asked"]
    }


def served_versions(endpoint: Endpoint, *, since: datetime) -> list[ServedVersion]:
    """Return when each version was in production, oldest first, without those that ended before `since`."""
    changes: list[ServedVersion] = []
    for record in releases.releases_of_endpoint(endpoint).order_by("generation"):
        production = record.body["release"]["production"]
        if changes and production == changes[-1].version:
            continue  # it changed staging only
        changes.append(
            ServedVersion(
                version=production,
                begin=record.created,
                end=None,
                kind=record.kind,
                generation=record.generation,
                by=record.by.username if record.by else None,
                reason=record.reason,
            )
        )
    ended = [period.model_copy(update={"end": following.begin}) for period, following in pairwise(changes)]
    return [period for period in [*ended, *changes[-1:]] if period.end is None or period.end > since]
