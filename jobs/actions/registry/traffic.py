"""Adds each report about prediction requests once, and folds old intervals into longer ones."""

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.db.models import Q

from jobs import clock
from jobs.messages.traffic import INTERVAL_SECONDS, MAX_COUNT, Counts, Tally, TrafficReport
from jobs.models import Replica, TrafficCount

LIFETIMES = (
    (INTERVAL_SECONDS, timedelta(hours=1, minutes=1)),
    (60, timedelta(days=1, hours=1)),
    (3600, timedelta(days=30, hours=4)),
)
"""How long intervals are kept, by length. Older ones are folded into the next length, or removed.

Longer than the ranges that `queries.traffic` reads from them: a range begins up to one point earlier,
and its first point must have all its requests.
"""

CLOCK_TOLERANCE = 15.0
"""Seconds that a server's clock may differ, or a report may take, before its intervals are moved."""

FOLD_SECONDS = 2.0
"""The scheduler waits while intervals are folded, so each call has a time limit."""

BATCH = 500
"""Rows per transaction, for which other SQLite writers wait."""


def add_report(replica: Replica, report: TrafficReport) -> bool:
    """Add a report's counts in the caller's transaction. Return whether they are new.

    A server repeats a report until its answer arrives, so a report may come twice, and a report from the
    server's earlier run may come late.
    """
    newer = Q(run__lt=report.run) | Q(run=report.run, sequence__lt=report.sequence)
    claimed = Replica.objects.filter(newer, pk=replica.pk)
    # The row stays locked until the transaction ends, so no other transaction changes this server's counts.
    if not claimed.update(run=report.run, sequence=report.sequence):
        return False
    now = clock.now().timestamp()
    for interval in report.intervals:
        place = _stored_interval(interval.start + _clock_offset(report.sent, now), now)
        if place is not None:
            for version in interval.versions:
                _add_counts(replica.pk, version.version, *place, [version.counts])
    return True


def _clock_offset(sent: float, now: float) -> int:
    """Return the seconds to add to a server's intervals if its clock is wrong."""
    ahead = now - sent
    if abs(ahead) <= CLOCK_TOLERANCE:
        return 0
    return round(ahead / INTERVAL_SECONDS) * INTERVAL_SECONDS


def _stored_interval(start: int, now: float) -> tuple[datetime, int] | None:
    """Return the stored interval for a reported one, or None if it is too old."""
    start = min(start, _floor_time(now, INTERVAL_SECONDS))
    for seconds, lifetime in LIFETIMES:
        if now - start <= lifetime.total_seconds():
            return datetime.fromtimestamp(_floor_time(start, seconds), UTC), seconds
    return None


def _floor_time(moment: float, seconds: int) -> int:
    return int(moment // seconds) * seconds


def _add_counts(replica: int, version: int, start: datetime, seconds: int, counts: Iterable[Counts]) -> None:
    """Add counts to a stored interval. The caller has locked the replica's row."""
    tally = Tally()
    for version_counts in counts:
        tally.add(version_counts)
    row, created = TrafficCount.objects.get_or_create(
        replica_id=replica, version=version, start=start, seconds=seconds
    )
    if not created:
        tally.add(row.counts)
    row.requests, row.failed = min(tally.succeeded + tally.failed, MAX_COUNT), min(tally.failed, MAX_COUNT)
    row.counts_json = tally.counts().model_dump(mode="json", exclude_defaults=True)
    row.save(update_fields=["requests", "failed", "counts_json"])


def fold_intervals() -> int:
    """Fold old intervals into longer ones and remove the oldest. Count the removed rows.

    The call ends after `FOLD_SECONDS`; the next call continues.
    """
    removed, deadline = 0, time.monotonic() + FOLD_SECONDS
    longer = [seconds for seconds, _ in LIFETIMES[1:]]
    for (seconds, lifetime), into in zip(LIFETIMES, [*longer, None], strict=True):
        # Only complete intervals of the next length, so that each is usually written once.
        oldest = _floor_time((clock.now() - lifetime).timestamp(), into or seconds)
        due = Q(seconds=seconds, start__lt=datetime.fromtimestamp(oldest, UTC))
        oldest_first = TrafficCount.objects.filter(due).order_by("start").values_list("replica", flat=True)
        while time.monotonic() < deadline and (replica := oldest_first.first()):
            removed += _fold_replica(replica, due, into)
    return removed


def _fold_replica(replica: int, due: Q, into: int | None) -> int:
    """Fold one replica's oldest due rows into intervals of `into` seconds. Count the rows."""
    with transaction.atomic():
        Replica.objects.select_for_update(no_key=True).filter(pk=replica).first()
        rows = list(TrafficCount.objects.filter(due, replica=replica).order_by("start")[:BATCH])
        if into is not None:
            folded: dict[tuple[int, datetime], list[Counts]] = {}
            for row in rows:
                start = datetime.fromtimestamp(_floor_time(row.start.timestamp(), into), UTC)
                folded.setdefault((row.version, start), []).append(row.counts)
            for (version, start), counts in folded.items():
                _add_counts(replica, version, start, into, counts)
        TrafficCount.objects.filter(pk__in=[row.pk for row in rows]).delete()
    return len(rows)
