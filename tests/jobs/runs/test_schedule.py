from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from jobs.actions import leases
from jobs.actions.runs import pipeline, schedule
from jobs.actions.search import suggest, trials
from jobs.models import Job
from jobs.queries.runs import jobs, queue
from jobs.queries.runs.devices import mesh_of
from jobs.queries.runs.health import SCHEDULER_LEASE
from jobs.queries.search import waiting
from tests.jobs.yard import SEARCH, PretendWorker, Yard, suggest_from_grid


def waits(job: Job) -> str:
    schedule.place_jobs()
    job.refresh_from_db()
    return job.why_waiting


def test_a_job_without_a_worker_shows_how_to_start_one(installation: Yard) -> None:
    assert "manage.py worker --pool default" in waits(installation.submit())


def test_a_search_without_trials_shows_how_to_start_a_worker_and_then_that_one_chooses_them(
    installation: Yard,
) -> None:
    search = installation.submit(search=SEARCH)
    pipeline.advance_all()
    assert "manage.py worker --pool default" in waits(search)
    PretendWorker()
    assert waits(search) == waiting.CHOOSING_TRIALS


def test_an_error_while_trials_are_chosen_is_shown_until_they_are_there(installation: Yard) -> None:
    search = installation.submit(search=SEARCH)
    PretendWorker()
    pipeline.advance_all()
    claimed = suggest.claim_request(search.pk)
    assert claimed is not None
    suggest.report_failure(claimed, "the space is empty")
    assert waits(search) == "Choosing the next trial failed: the space is empty"


def test_an_error_reported_during_a_pass_is_not_overwritten_by_it(
    installation: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = installation.submit(search=SEARCH)
    PretendWorker()
    pipeline.advance_all()
    claimed = suggest.claim_request(search.pk)
    assert claimed is not None
    explain = schedule._explain_searches_without_trials

    def report_first(*rows_and_pools: Any) -> dict[int, str]:
        suggest.report_failure(claimed, "the space is empty")
        return explain(*rows_and_pools)

    monkeypatch.setattr(schedule, "_explain_searches_without_trials", report_first)
    assert waits(search) == "Choosing the next trial failed: the space is empty"


def test_a_job_that_no_scheduler_has_seen_shows_how_to_start_one(installation: Yard) -> None:
    job = installation.submit()
    assert jobs.job_out(job).why_waiting.endswith("manage.py scheduler")
    leases.hold(SCHEDULER_LEASE, "here", seconds=60)
    assert jobs.job_out(job).why_waiting == jobs.NOT_PLACED


def test_the_place_in_the_queue_is_by_priority_and_age(installation: Yard) -> None:
    submitted = [
        installation.submit(),
        installation.submit(),
        installation.submit(resources={"priority": 90}),
    ]
    places = [queue.queue_position(job) for job in submitted]
    assert places == [2, 3, 1]
    assert [
        entry.place
        for job in submitted
        for entry in queue.waiting_jobs(installation.owner)
        if entry.job == job
    ] == places
    PretendWorker(slots=4)
    schedule.place_jobs()
    submitted[0].refresh_from_db()
    assert queue.queue_position(submitted[0]) is None


def test_a_pass_without_unfinished_jobs_costs_one_statement(
    installation: Yard, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    PretendWorker(slots=1)
    with django_assert_num_queries(1):
        assert schedule.place_jobs() == 0


def test_a_pass_reads_of_the_specs_of_waiting_jobs_only_their_meshes(installation: Yard) -> None:
    installation.submit()
    installation.submit(**gpu_mesh(2))
    PretendWorker(slots=1, gpus=1)
    # The database may return them in any order.
    read = sorted(schedule._waiting_jobs(), key=lambda job: job.pk)
    assert [mesh_of(job) is None for job in read] == [True, False]
    for job in read:
        assert job.get_deferred_fields() == {"results_json", "progress", "warnings", "error"}
        assert set(job._state.fields_cache) == {"project"}, "neither the revision nor the root"


def test_more_waiting_jobs_take_no_more_statements(installation: Yard) -> None:
    PretendWorker(slots=1, gpus=1)

    def statements() -> int:
        schedule.place_jobs()  # writes why each waits
        with CaptureQueriesContext(connection) as queries:
            schedule.place_jobs()
        return len(queries)

    installation.submit(resources={"slots": 2})
    few = statements()
    for _ in range(2):
        installation.submit(resources={"slots": 2})
        installation.submit(**gpu_mesh(2))
    assert statements() == few


def test_a_pass_over_waiting_trials_costs_twelve_statements(
    installation: Yard, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    search = installation.submit(search={**SEARCH, "parallel_trials": 1})
    worker = PretendWorker(slots=1)
    pipeline.advance_all()
    suggest_from_grid(search)
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    trials.queue_by_hand(search, {"units": 48}, by=installation.owner)
    trials.queue_by_hand(search, {"units": 64}, by=installation.owner)
    schedule.place_jobs()  # writes why they wait, and compiles the queries
    # Whether a job is unfinished, open attempts, jobs, trials, their search's revision, live workers,
    # durations of trials. For the order: shares, ended attempts that they lack, limits of people,
    # reservations, settings of pools. PostgreSQL is also asked for the time.
    with django_assert_max_num_queries(13 if connection.vendor == "postgresql" else 12):
        assert schedule.place_jobs() == 0
    assert attempt.job.trials.waiting().count() == 2


def test_priority_comes_before_age(installation: Yard) -> None:
    installation.submit()
    urgent = installation.submit(resources={"priority": 90})
    worker = PretendWorker(slots=1)
    schedule.place_jobs()
    assert [a.job_id for a in worker.claim_all()] == [urgent.pk]


def gpu_mesh(size: int) -> dict[str, Any]:
    mesh = {"devices": "gpu", "shape": [size], "axis_names": ["data"]}
    return {"mesh": mesh, "resources": {"slots": size}}
