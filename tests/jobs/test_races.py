"""Concurrent access to one database from real threads with their own connections.

They use the database of the suite: an SQLite file, or PostgreSQL by TRAINYARD_DATABASE_URL.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, connections, transaction

from jobs import clock, scheduler
from jobs.actions.runs import attempt_end, attempts, events, pipeline, schedule
from jobs.actions.search import search_changes
from jobs.messages import events as contract
from jobs.models import Attempt, EventChunk, Job
from jobs.models import Worker as WorkerRow
from jobs.queries.runs import events as event_log
from jobs.queries.runs import metrics as metric_log
from jobs.states import Outcome
from tests.jobs.yard import SEARCH, PretendWorker, Yard, make_yard

THREADS = 8
PATIENCE = 200.0
BREATH = 0.001
"""How long a reader that found nothing waits, in seconds. One that never waits can keep Python's global lock
from the writers of its process for seconds at a time, which is no race of rows."""
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def installation(transactional_db: None) -> Yard:
    return make_yard()


@pytest.fixture
def worker(installation: Yard) -> PretendWorker:
    return PretendWorker(slots=2)


def at_once[T](*racers: Callable[[], T]) -> list[T | BaseException]:
    """Start all functions at once; return each one's result or exception."""
    line = threading.Barrier(len(racers))

    def run(racer: Callable[[], T]) -> T:
        try:
            line.wait(timeout=60)
            return racer()
        finally:
            connections.close_all()

    pool = ThreadPoolExecutor(len(racers))
    ends = [pool.submit(run, racer) for racer in racers]
    ended, _ = wait(ends, timeout=PATIENCE)
    pool.shutdown(wait=False)
    assert len(ended) == len(ends), "one never ended"
    return [end.exception() or end.result() for end in ends]


def assigned(installation: Yard, worker: PretendWorker) -> Attempt:
    """Return an attempt that waits to be claimed."""
    WorkerRow.objects.filter(pk=worker.row.pk).update(lease_until=clock.seconds_from_now(3600))
    job = installation.submit()
    schedule.place_jobs()
    return Attempt.objects.get(job=job)


def test_of_many_concurrent_claims_one_succeeds(installation: Yard, worker: PretendWorker) -> None:
    for _ in range(5):
        attempt = assigned(installation, worker)
        ends = at_once(*[lambda pk=attempt.pk: attempts.claim(pk, worker_id=worker.row.pk)] * THREADS)
        assert sum(isinstance(end, Attempt) for end in ends) == 1, ends
        assert ends.count(None) == THREADS - 1
        attempt_end.finish(attempt.pk, Outcome.COMPLETED, result={})


def test_many_schedulers_place_each_job_once(installation: Yard) -> None:
    PretendWorker(slots=16)
    jobs = [installation.submit() for _ in range(6)]
    at_once(*[schedule.place_jobs] * THREADS)
    assert Counter(Attempt.objects.values_list("job", flat=True)) == {job.pk: 1 for job in jobs}
    assert set(Job.objects.values_list("state", "fence")) == {("starting", 1)}


BLOCKED = """
SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))
"""


def wait_until_blocking(asks: threading.Event) -> None:
    """Return once another connection waits for a lock that this transaction holds.

    Args:
        asks: set by the other connection just before it asks for the lock. SQLite has one lock and no view of
            those that wait for it, so this is all that is known there.
    """
    assert asks.wait(timeout=60)
    deadline = time.monotonic() + PATIENCE
    with connection.cursor() as cursor:
        while connection.vendor == "postgresql":
            cursor.execute(BLOCKED)
            if cursor.fetchone()[0]:
                return
            assert time.monotonic() < deadline
            time.sleep(BREATH)


def test_a_search_that_is_revised_while_the_scheduler_waits_for_its_row_continues(installation: Yard) -> None:
    job = installation.submit(search={**SEARCH, "algorithm": "random"})
    pipeline.advance_all()
    is_revised, asks = threading.Event(), threading.Event()

    def revise() -> None:
        with transaction.atomic():
            search_changes.revise_search(job, {"max_trials": 9}, by=installation.owner)
            is_revised.set()
            wait_until_blocking(asks)

    def note_locks(execute: Callable[..., object], sql: str, *rest: object) -> object:
        if "FOR NO KEY UPDATE" in sql or sql.startswith("BEGIN"):
            asks.set()
        return execute(sql, *rest)

    def advance() -> None:
        is_revised.wait(timeout=60)
        with connection.execute_wrapper(note_locks):
            pipeline.advance_all()

    assert at_once(revise, advance) == [None, None]
    job = Job.objects.get(pk=job.pk)
    assert (job.state, job.error) == ("queued", None)
    assert job.revision is not None and job.revision.number == 2


def test_of_many_schedulers_one_holds_the_lease(transactional_db: None) -> None:
    ends = at_once(*[lambda name=name: scheduler.hold_lease(f"scheduler {name}") for name in range(THREADS)])
    assert Counter(ends) == {True: 1, False: THREADS - 1}


def test_events_of_many_writers_get_cursors_without_gap_in_the_order_readers_see(installation: Yard) -> None:
    job = installation.submit()
    before = job_head(job)
    rounds = 25
    seen: list[Any] = []
    total = THREADS * rounds * 2
    deadline = time.monotonic() + PATIENCE

    def write(writer: int) -> None:
        for n in range(rounds):
            with transaction.atomic():
                body = events.event("log", job, level="info", source="runner", line=f"{writer} {n}")
                events.append(job.pk, [body, body])

    def read() -> None:
        cursor = before
        while len(seen) < total and time.monotonic() < deadline:
            page = event_log.read_events(job.pk, after=cursor)
            seen.extend(page.items)
            cursor = page.cursor
            if not page.items:
                time.sleep(BREATH)

    ends = at_once(read, *[lambda writer=writer: write(writer) for writer in range(THREADS)])
    assert ends == [None] * (THREADS + 1)
    assert [event["cursor"] for event in seen] == list(range(before + 1, before + total + 1))
    lines = [event["line"] for event in seen]
    for writer in range(THREADS):
        own_lines = [line for line in lines if line.startswith(f"{writer} ")]
        assert own_lines == [f"{writer} {n}" for n in range(rounds) for _ in (1, 2)]
    assert EventChunk.objects.filter(root=job).exclude(last=before).count() >= THREADS * rounds


def job_head(job: Job) -> int:
    return event_log.newest_cursors([job.pk])[job.pk]


def test_a_renewal_and_the_reaper_never_both_have_an_attempt(
    installation: Yard, worker: PretendWorker
) -> None:
    for _ in range(10):
        attempt = assigned(installation, worker)
        attempts.claim(attempt.pk, worker_id=worker.row.pk)
        Attempt.objects.filter(pk=attempt.pk).update(lease_until=clock.now() - timedelta(milliseconds=1))
        renewed, reaped = at_once(partial(attempts.renew, worker.row.pk, [attempt.pk]), attempt_end.reap)
        attempt.refresh_from_db()
        if reaped == 1:
            assert (attempt.state, attempt.outcome) == ("ended", "lost")
            assert renewed == {}
        else:
            assert attempt.state == "running"
            assert isinstance(renewed, dict) and attempt.pk in renewed
            attempt_end.finish(attempt.pk, Outcome.COMPLETED, result={})
        Job.objects.all().update(state="stopped")


def test_of_two_endings_of_an_attempt_one_counts(installation: Yard, worker: PretendWorker) -> None:
    for _ in range(5):
        attempt = assigned(installation, worker)
        attempts.claim(attempt.pk, worker_id=worker.row.pk)
        worker.report(attempt, contract.Started(time=1.0))
        ends = at_once(
            partial(attempt_end.finish, attempt.pk, Outcome.COMPLETED, result={}),
            partial(attempt_end.finish, attempt.pk, Outcome.LOST),
        )
        assert sum(end is None for end in ends) == 1, ends
        finals = [e for e in event_log.read_events(attempt.job_id, after=0).items if e["type"] == "state"]
        assert sum(event["state"] in ("completed", "lost") for event in finals) == 1
        Job.objects.all().update(state="stopped")


def test_one_batch_sent_by_many_is_written_once(installation: Yard, worker: PretendWorker) -> None:
    attempt = assigned(installation, worker)
    attempts.claim(attempt.pk, worker_id=worker.row.pk)
    points = [("loss", float(x), 1.0 / x, 1.0) for x in range(1, 6)]
    batch = [contract.Metric(time=1.0, points=points)]
    send = lambda: attempts.record_events(attempt.pk, batch, spool_position=100, stored={})  # noqa: E731
    assert at_once(*[send] * THREADS) == [None] * THREADS
    (series,) = metric_log.read_series(attempt.job, names=["loss"])
    assert [point[0] for point in series["points"]] == [1, 2, 3, 4, 5]
    events_found = [e for e in event_log.read_events(attempt.job_id, after=0).items if e["type"] == "metric"]
    assert len(events_found) == 1
