"""Figures of the whole installation: right, bounded, and as cheap with many rows as with few."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.actions import totals
from jobs.actions.runs import attempt_end, schedule
from jobs.models import Attempt, Job, RunningTotal, Worker
from jobs.queries.runs import figures
from jobs.queries.runs.figures import REST, read_figures
from jobs.states import AttemptState, Outcome
from tests.jobs.yard import PretendWorker, Yard, make_yard

pytestmark = pytest.mark.django_db


@pytest.fixture
def yard() -> Yard:
    return make_yard()


def ended_attempts(count: int, outcome: str, code: str | None) -> None:
    job, worker = Job.objects.get(), PretendWorker().row
    first = Attempt.objects.count() + 1
    Attempt.objects.bulk_create(
        Attempt(
            job=job,
            number=first + number,
            worker=worker,
            slots=1,
            state=AttemptState.ENDED,
            outcome=outcome,
            error=None if code is None else {"code": code, "message": "m"},
            lease_until=timezone.now(),
            assigned=timezone.now(),
            ended=timezone.now(),
        )
        for number in range(count)
    )


def runs() -> dict[str, int]:
    return dict(RunningTotal.objects.filter(name=totals.RUNS).values_list("label", "value"))


def test_the_queue_has_its_length_and_age_by_pool(yard: Yard) -> None:
    first, _ = yard.submit(), yard.submit()
    Job.objects.filter(pk=first.pk).update(queued=timezone.now() - timedelta(seconds=100))
    yard.submit(resources={"pool": "gpu"})
    PretendWorker(slots=3)
    pools = read_figures().pools
    assert (pools["default"].queued, pools["gpu"].queued) == (2, 1)
    assert 99 < pools["default"].oldest_seconds < 130
    assert pools["gpu"].oldest_seconds < 30
    assert (pools["default"].slots, pools["gpu"].slots) == (3, 0)
    schedule.place_jobs()
    pools = read_figures().pools
    assert (pools["default"].queued, pools["default"].busy) == (0, 2)


def test_a_worker_that_reports_no_more_is_silent_and_has_no_slots() -> None:
    row = PretendWorker(slots=2).row
    Worker.objects.filter(pk=row.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    pool = read_figures().pools["default"]
    assert (pool.slots, pool.workers) == (0, {"up": 0, "draining": 0, "silent": 1})


def test_the_number_of_queries_does_not_grow(yard: Yard) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            read_figures()
        return len(captured)

    yard.submit()
    before = queries()
    for pool in ("default", "gpu", "tpu", "other"):
        PretendWorker(pool=pool, name=pool)
        for _ in range(3):
            yard.submit(resources={"pool": pool})
    schedule.place_jobs()
    assert queries() == before <= 8


def test_pools_are_bounded_and_the_rest_is_summed(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "MOST_POOLS", 2)
    PretendWorker(pool="served", name="served")
    for pool in ("a", "b", "b", "c"):
        yard.submit(resources={"pool": pool})
    pools = read_figures().pools
    assert list(pools) == ["b", "served", REST]
    assert (pools["b"].queued, pools[REST].queued) == (2, 2)


def test_ends_are_counted_once_by_outcome_and_reason(yard: Yard) -> None:
    yard.submit()
    ended_attempts(3, Outcome.COMPLETED, None)
    ended_attempts(2, Outcome.LOST, "lease_expired")
    ended_attempts(1, Outcome.FAILED, "Any text; of code")
    assert totals.count_ended_attempts() == 6
    assert totals.count_ended_attempts() == 0
    assert runs() == {"completed/": 3, "lost/lease_expired": 2, "failed/other": 1}


def test_a_total_outlives_what_was_counted(yard: Yard) -> None:
    yard.submit()
    ended_attempts(2, Outcome.COMPLETED, None)
    totals.count_ended_attempts()
    Attempt.objects.all().delete()
    ended_attempts(1, Outcome.COMPLETED, None)
    totals.count_ended_attempts()
    assert runs() == {"completed/": 3}


def test_a_count_that_is_killed_is_repeated(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.submit()
    ended_attempts(2, Outcome.COMPLETED, None)

    class Killed(BaseException):
        pass

    def die(name: str, counts: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(totals, "add", die)
        with pytest.raises(Killed):
            totals.count_ended_attempts()
    assert Attempt.objects.filter(counted=True).count() == 0
    assert totals.count_ended_attempts() == 2
    assert runs() == {"completed/": 2}


def test_many_codes_of_errors_become_one_label(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals, "MOST_REASONS", 2)
    yard.submit()
    for code in ("one", "two", "three", "four"):
        ended_attempts(1, Outcome.FAILED, code)
        totals.count_ended_attempts()
    assert runs() == {"failed/one": 1, "failed/two": 1, "failed/other": 2}


def test_a_real_end_is_counted(yard: Yard) -> None:
    yard.submit()
    worker = PretendWorker()
    schedule.place_jobs()
    [attempt] = worker.claim_all()
    attempt_end.finish(attempt.pk, Outcome.FAILED, error={"code": "out_of_memory", "message": "m"})
    totals.count_ended_attempts()
    assert runs() == {"failed/out_of_memory": 1}
