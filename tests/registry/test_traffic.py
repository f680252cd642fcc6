"""Request counts: added once, folded into longer intervals, and read as figures over time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError
from django.test import Client

from jobs import clock
from jobs.actions.people import service_tokens
from jobs.actions.registry import replica_reports, traffic
from jobs.messages.histogram import bucket_of
from jobs.messages.release import ReplicaReport
from jobs.messages.traffic import MAX_COUNT, Counts, TrafficInterval, TrafficReport, VersionCounts
from jobs.models import Replica, TrafficCount
from jobs.queries.registry import traffic as queries
from tests.registry.conftest import Yard

NOW = datetime(2026, 3, 1, 12, 0, 7, tzinfo=UTC)


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, NOW)


def set_clock(monkeypatch: pytest.MonkeyPatch, moment: datetime) -> None:
    monkeypatch.setattr(clock, "now", lambda: moment)
    monkeypatch.setattr(clock, "estimate", lambda: moment)


def counts(requests: int = 1, *, milliseconds: float = 10.0, **more: Any) -> Counts:
    return Counts(latency={bucket_of(milliseconds * 1000): requests}, **more)


def interval(start: datetime, version: int, version_counts: Counts) -> TrafficInterval:
    return TrafficInterval(
        start=int(start.timestamp()), versions=(VersionCounts(version=version, counts=version_counts),)
    )


def send(
    yard: Yard,
    *intervals: TrafficInterval,
    sequence: int = 1,
    run: int = 1,
    replica: str = "here",
    sent: datetime = NOW,
) -> None:
    report = TrafficReport(run=run, sequence=sequence, sent=sent.timestamp(), intervals=intervals)
    whole = ReplicaReport(replica=replica, model=yard.model.name, generation=1, traffic=report)
    replica_reports.record_report(whole, server=replica)


def ago(seconds: float) -> datetime:
    start = NOW - timedelta(seconds=seconds)
    return datetime.fromtimestamp(start.timestamp() // 10 * 10, UTC)


def asked() -> int:
    return sum(row.requests for row in TrafficCount.objects.all())


def test_a_repeated_report_and_one_of_an_earlier_run_are_not_counted_again(yard: Yard) -> None:
    send(yard, interval(ago(20), 1, counts(3)))
    send(yard, interval(ago(20), 1, counts(3)))
    send(yard, interval(ago(20), 1, counts(4)), sequence=2)
    assert asked() == 7
    send(yard, interval(ago(10), 1, counts(5)), run=2)
    send(yard, interval(ago(20), 1, counts(9)), sequence=3)
    assert asked() == 12
    send(yard, interval(ago(20), 1, counts(1)), replica="there")
    assert asked() == 13


def test_a_write_that_fails_halfway_leaves_nothing_and_its_repetition_is_counted(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = (interval(ago(30), 1, counts(2)), interval(ago(20), 1, counts(3)))
    add, calls = traffic._add_counts, []

    def fail_at_the_second(*arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise DatabaseError("the disk is full")
        add(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(traffic, "_add_counts", fail_at_the_second)
        with pytest.raises(DatabaseError):
            send(yard, *both)
    assert (asked(), Replica.objects.count()) == (0, 0)
    send(yard, *both)
    assert asked() == 5


def test_intervals_of_a_server_whose_clock_is_wrong_are_moved_to_their_time(yard: Yard) -> None:
    wrong = timedelta(hours=3, seconds=4)
    send(yard, interval(ago(20) - timedelta(hours=3), 1, counts(3)), sent=NOW - wrong)
    assert TrafficCount.objects.get().start == ago(20)
    send(yard, interval(NOW + timedelta(days=4) - timedelta(seconds=7), 1, counts(3)), sequence=2)
    assert TrafficCount.objects.latest("start").start == ago(0), "none is in the future"


def test_old_intervals_are_folded_into_longer_ones_without_losing_a_request(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    for sequence in range(1, 13):
        send(yard, interval(ago(10 * sequence), 1 + sequence % 2, counts(1, rows=2)), sequence=sequence)
    assert TrafficCount.objects.count() == 12
    set_clock(monkeypatch, NOW + timedelta(hours=2))
    traffic.fold_intervals()
    minutes = TrafficCount.objects.filter(seconds=60)
    assert (minutes.count(), TrafficCount.objects.count(), asked()) == (4, 4, 12)
    assert sum(row.counts.rows for row in minutes) == 24
    # A report that was delayed by an outage is added to its minute.
    send(yard, interval(ago(60), 1, counts(5)), sequence=20, sent=NOW + timedelta(hours=2))
    assert (TrafficCount.objects.count(), asked()) == (4, 17)
    set_clock(monkeypatch, NOW + timedelta(days=3))
    traffic.fold_intervals()
    assert (set(TrafficCount.objects.values_list("seconds", flat=True)), asked()) == ({3600}, 17)
    set_clock(monkeypatch, NOW + timedelta(days=32))
    assert traffic.fold_intervals() == 2
    assert not TrafficCount.objects.exists()


def test_figures_merge_replicas_and_versions(yard: Yard) -> None:
    yard.live()
    send(yard, interval(ago(20), 1, counts(97, milliseconds=10, rows=40, batches={0: 10}, waiting=3)))
    slow = counts(3, milliseconds=500, errors={400: 5, 503: 1})
    send(yard, interval(ago(20), 2, slow), replica="there")
    answer = queries.traffic_of_endpoint(yard.endpoint, "15m")
    assert (answer.step_seconds, len(answer.points), answer.end) == (10, 90, ago(3))
    total = answer.total
    assert (total.requests, total.failed, total.errors) == (106, 6, {"400": 5, "503": 1})
    assert total.versions == {"1": 97, "2": 9}
    assert total.p50_ms == pytest.approx(10, rel=0.02)
    assert total.p99_ms == pytest.approx(500, rel=0.02)
    assert (total.batch_mean, total.batch_p95, total.waiting) == (4, 1, 3)
    (point,) = [point for point in answer.points if point.requests]
    assert (point.at, point.requests_per_second) == (ago(20), 10.6)
    assert {replica.name: replica.requests for replica in answer.replicas} == {"here": 97, "there": 9}
    only = queries.traffic_of_endpoint(yard.endpoint, "15m", version=2).total
    assert only.requests == 9
    assert only.p50_ms == pytest.approx(500, rel=0.02)


@pytest.mark.parametrize("range_", queries.RANGES)
def test_every_range_has_every_request_of_its_time_once(yard: Yard, range_: str) -> None:
    for sequence, age in enumerate((20, 3000, 5 * 3600, 20 * 3600, 6 * 86_400, 29 * 86_400), start=1):
        send(yard, interval(ago(age), 1, counts(1)), sequence=sequence)
    traffic.fold_intervals()
    answer = queries.traffic_of_endpoint(yard.endpoint, range_)
    expected = 1 + list(queries.RANGES).index(range_)
    assert answer.total.requests == expected
    assert sum(point.requests for point in answer.points) == expected


@pytest.mark.parametrize("range_", queries.RANGES)
def test_the_first_point_of_a_range_has_all_of_its_requests_just_after_the_hour(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, range_: str
) -> None:
    now = NOW.replace(second=1)
    set_clock(monkeypatch, now)
    begin = queries.traffic_of_endpoint(yard.endpoint, range_).begin
    send(yard, interval(begin, 1, counts(3)), sent=now)
    traffic.fold_intervals()
    first = queries.traffic_of_endpoint(yard.endpoint, range_).points[0]
    assert (first.at, first.requests) == (begin, 3)


def test_counts_of_a_false_report_are_limited_and_do_not_stop_the_folding(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    huge = Counts(
        latency={1: MAX_COUNT, 2: MAX_COUNT}, errors={400: MAX_COUNT}, rows=MAX_COUNT, waiting=MAX_COUNT
    )
    send(yard, interval(ago(20), 1, huge), interval(ago(30), 1, huge))
    send(yard, interval(ago(20), 1, huge), sequence=2)
    set_clock(monkeypatch, NOW + timedelta(hours=3))
    assert traffic.fold_intervals() > 0
    row = TrafficCount.objects.get()
    assert (row.requests, row.failed, row.counts.rows) == (MAX_COUNT, MAX_COUNT, MAX_COUNT)


@pytest.mark.parametrize(
    "field",
    [
        {"generation": 2**31},
        {"generation": -1},
        {"generation": 10**30},
        {"loading": 2**31},
        {"versions": {"x": "serving"}},
        {"versions": {"9" * 400: "serving"}},
    ],
)
def test_a_report_of_impossible_numbers_is_refused(yard: Yard, field: dict[str, Any]) -> None:
    secret = service_tokens.create_credential("b", by=None)
    response = Client().post(
        "/api/v1/serving/reports",
        {"replica": "here", "model": yard.model.name, "generation": 1} | field,
        content_type="application/json",
        headers={"Authorization": f"Bearer {secret}"},
    )
    assert response.status_code == 422
