"""Metric points from a runner's events to the curves and events that readers see."""

import math
import zlib
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.actions.runs import attempt_end, attempts, events, metrics, schedule
from jobs.errors import StaleFence
from jobs.messages import events as contract
from jobs.models import Attempt, Job, MetricChunk, MetricSeries, Trial
from jobs.queries.runs import events as event_log
from jobs.queries.runs import metrics as curves
from jobs.queries.runs.codec import pack_columns, unpack_columns
from jobs.states import Outcome
from tests.jobs.yard import PretendWorker, Yard


@pytest.fixture
def job(installation: Yard) -> Job:
    return installation.submit()


@pytest.fixture
def attempt(job: Job, worker: PretendWorker) -> Attempt:
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    return attempt


def table(first: int, rows: int, *names: str, **fields: object) -> contract.Points:
    xs = tuple(float(x) for x in range(first, first + rows))
    columns = tuple(tuple(x / (1 + i) for x in xs) for i in range(len(names)))
    return contract.Points(time=xs[-1], names=names, at=xs, times=xs, values=columns, **fields)


def points_of(job: Job, name: str) -> list[tuple[float | None, ...]]:
    (series,) = curves.read_series(job, names=[name], max_points=100_000)
    return [(point[0], point[1]) for point in series["points"]]


def test_readers_see_a_table_of_points_as_a_metric_event(
    job: Job, attempt: Attempt, worker: PretendWorker
) -> None:
    values = ((0.5, None), (0.25, 0.75))
    worker.report(
        attempt,
        contract.Points(
            time=9.0, execution=2, names=("loss", "acc"), at=(1, 2), times=(8.0, 9.0), values=values
        ),
    )
    event = event_log.read_events(job.pk, after=0).items[-1]
    assert event.pop("cursor")
    assert event == {
        "type": "metric",
        "time": 9.0,
        "x": "epoch",
        "execution": 2,
        "nonfinite": True,
        "job": job.pk,
        "attempt": attempt.number,
        "points": [
            ["loss", 1, 0.5, 8.0],
            ["acc", 1, 0.25, 8.0],
            ["loss", 2, None, 9.0],
            ["acc", 2, 0.75, 9.0],
        ],
    }
    assert points_of(job, "loss") == [(1, 0.5), (2, None)]


def test_points_and_single_metrics_of_a_series_follow_each_other(
    job: Job, attempt: Attempt, worker: PretendWorker
) -> None:
    again = contract.Metric(time=1.0, points=(("loss", 3.0, 7.0, 1.0),))
    worker.report(attempt, table(1, 2, "loss"), again, table(4, 1, "loss", "acc"))
    assert points_of(job, "loss") == [(1, 1), (2, 2), (3, 7), (4, 4)]
    assert points_of(job, "acc") == [(4, 2)]


def test_many_small_commits_become_few_chunks_with_every_point_in_order(
    job: Job, attempt: Attempt, worker: PretendWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "POINTS_PER_CHUNK", 50)
    for commit in range(130):
        worker.report(attempt, table(commit * 3, 3, "loss"))
    assert points_of(job, "loss") == [(x, x) for x in range(390)]
    counts = list(MetricChunk.objects.order_by("pk").values_list("count", flat=True))
    assert sum(counts) == 390
    assert len(counts) < 390 / 50 + metrics.LOOSE


def test_after_compaction_the_later_of_two_values_at_an_x_is_kept(
    job: Job, attempt: Attempt, worker: PretendWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "LOOSE", 4)
    for value in range(12):
        worker.report(attempt, contract.Metric(time=1.0, points=(("loss", 1.0, float(value), 1.0),)))
        assert points_of(job, "loss") == [(1, value)]


def test_the_statements_of_a_commit_do_not_depend_on_the_length_of_series(
    attempt: Attempt, worker: PretendWorker
) -> None:
    worker.report(attempt, table(0, 1, "a", "b", "c"))
    counts = []
    for commit in range(3):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            worker.report(attempt, table(1 + commit * 1000, 1000, "a", "b", "c"))
        counts.append(len(queries))
    assert max(counts) <= 10


def test_a_fenced_runner_writes_no_point(job: Job, attempt: Attempt, worker: PretendWorker) -> None:
    worker.report(attempt, table(1, 1, "loss"))
    head = event_log.newest_cursors([job.pk])
    attempt_end.finish(attempt.pk, Outcome.LOST, error={"code": "lost", "message": "a test"})
    after = event_log.newest_cursors([job.pk])
    with pytest.raises(StaleFence):
        worker.report(attempt, table(2, 1, "loss"))
    assert points_of(job, "loss") == [(1, 1)]
    assert head != after == event_log.newest_cursors([job.pk])


def test_a_batch_that_fails_writes_nothing(
    job: Job, attempt: Attempt, worker: PretendWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(events, "append", fail)
        with pytest.raises(RuntimeError):
            attempts.record_events(attempt.pk, [table(1, 5, "loss")], spool_position=70, stored={})
    assert curves.read_series(job) == []
    attempts.record_events(attempt.pk, [table(1, 5, "loss")], spool_position=70, stored={})
    attempts.record_events(attempt.pk, [table(1, 5, "loss")], spool_position=70, stored={})
    assert points_of(job, "loss") == [(x, x) for x in range(1, 6)]


def test_too_many_metric_names_are_refused_with_one_warning(
    job: Job, attempt: Attempt, worker: PretendWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "MAX_SERIES", 3)
    for step in range(4):
        worker.report(attempt, table(step, 1, f"a{step}", f"b{step}"))
    assert {series["name"] for series in curves.read_series(job)} == {"a0", "b0", "a1"}
    warnings = [e for e in event_log.read_events(job.pk, after=0).items if e["type"] == "warning"]
    assert [event["code"] for event in warnings] == ["too_many_metrics"]


def test_series_are_in_the_order_of_the_numbers_of_their_trials(job: Job) -> None:
    trials = [Trial(job=job, number=number, values={}, values_digest="") for number in range(1, 11)]
    for trial in (None, *reversed(Trial.objects.bulk_create(trials))):
        MetricSeries.objects.create(job=job, trial=trial, attempt=1, name="loss")
    assert [series["trial"] for series in curves.read_series(job)] == [None, *range(1, 11)]


def test_a_log_line_written_during_a_read_of_the_newest_comes_after_its_cursor(
    job: Job, attempt: Attempt, worker: PretendWorker
) -> None:
    worker.report(attempt, contract.Log(time=1.0, line="before"))
    reads: list[str] = []

    def write_after_first_read(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        reads.append(sql)
        if len(reads) == 1:
            worker.report(attempt, contract.Log(time=2.0, line="during"))
        return result

    with connection.execute_wrapper(write_after_first_read):
        newest = event_log.newest_logs(job)
    assert [line["line"] for line in newest.items] == ["before"]
    following = event_log.read_logs(job, after=newest.cursor)
    assert [line["line"] for line in following.items] == ["during"]


def test_a_slice_of_events_ends_before_it_grows_too_large(
    job: Job, attempt: Attempt, worker: PretendWorker
) -> None:
    start = event_log.newest_cursors([job.pk])[job.pk]
    rows = event_log.POINTS_PER_SLICE // 4
    for event in range(6):
        worker.report(attempt, table(event * rows, rows, "a", "b"))
    first = event_log.read_events(job.pk, after=start)
    rest = event_log.read_events(job.pk, after=first.cursor, limit=2)
    assert [len(first.items), len(rest.items)] == [2, 2]
    assert event_log.read_events(job.pk, after=rest.cursor).cursor == start + 6


def test_columns_read_back_as_they_were_and_so_do_those_of_older_releases() -> None:
    columns = np.array([[1.0, 2.0, 3.0], [0.1, math.nan, -0.0], [1.7e9, 1.8e9, 1.9e9]])
    for packed in (pack_columns(columns), zlib.compress(columns.tobytes())):
        assert unpack_columns(packed).tobytes() == columns.tobytes()


def test_buckets_show_the_last_value_and_the_extremes(
    job: Job, attempt: Attempt, worker: PretendWorker
) -> None:
    xs = tuple(float(x) for x in range(10))
    values = (5.0, 1.0, None, 9.0, 2.0, None, None, None, None, None)
    worker.report(attempt, contract.Points(time=1.0, names=("loss",), at=xs, times=xs, values=(values,)))
    (series,) = curves.read_series(job, max_points=2)
    assert series["total_points"] == 10
    assert series["points"] == [[4, 2.0, 1.0, 9.0, 4], [9, None, None, None, 9]]


def timed(first: int, *times: float) -> contract.Points:
    """Return a loss for each epoch from `first` on, measured at these times."""
    at = tuple(float(first + index) for index in range(len(times)))
    return contract.Points(time=times[-1], names=("loss",), at=at, times=times, values=((0.5,) * len(times),))


def resume(attempt: Attempt, worker: PretendWorker) -> Attempt:
    """Return the attempt that replaces one which is lost."""
    attempt_end.finish(attempt.pk, Outcome.LOST, error={"code": "lost", "message": "a test"})
    schedule.place_jobs()
    (replacement,) = worker.claim_all()
    return replacement


def test_a_curve_names_the_attempt_of_its_points_and_when_each_began(
    job: Job, attempt: Attempt, worker: PretendWorker
) -> None:
    worker.report(attempt, timed(1, 100.0, 110.0, 120.0, 130.0, 140.0))
    begin = {"attempt": attempt.number, "x": 1.0, "time": 100.0}
    (series,) = curves.read_series(job)
    assert series["attempts"] == [begin]
    assert [point[4] for point in series["points"]] == [100, 110, 120, 130, 140]
    second = resume(attempt, worker)
    worker.report(second, timed(3, 500.0))
    resumed = {"attempt": second.number, "x": 3.0, "time": 500.0}
    lost = {"attempt": attempt.number, "x": 4.0, "time": 130.0}
    (series,) = curves.read_series(job)
    assert series["attempts"] == [begin, resumed, lost], "epochs 4 and 5 are not reached again"
    worker.report(second, timed(4, 510.0, 520.0, 530.0))
    (series,) = curves.read_series(job, start=5.0, max_points=1)
    assert series["attempts"] == [begin, resumed], "of the whole curve, before it is reduced"
