"""How long a job ran: over all its attempts, without the time between them."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from jobs.models import Attempt, Job
from jobs.queries.runs import jobs as queries
from tests.factories import make_attempt, make_job, make_worker
from tests.jobs.test_kinds import OUTSIDE
from tests.people import People

NOON = timezone.make_aware(datetime(2026, 3, 1, 12))


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def ran(job: Job, begin: float, end: float) -> Attempt:
    """Give a job an attempt from one second after noon to another."""
    attempt = make_attempt(job, make_worker())
    Attempt.objects.filter(pk=attempt.pk).update(claimed=at(begin), ended=at(end), state="ended")
    return attempt


@pytest.fixture
def job(people: People) -> Job:
    job = make_job(kind="train", project=people.project, by=people.owner, state="completed")
    Job.objects.filter(pk=job.pk).update(started=at(200), finished=at(267))
    job.refresh_from_db()
    return job


def seconds_of(job: Job) -> float | None:
    return queries.job_out(Job.objects.get(pk=job.pk)).seconds


def test_the_time_before_a_stop_counts_and_the_time_until_the_resume_does_not(job: Job) -> None:
    ran(job, 0, 103)
    ran(job, 200, 267)
    assert seconds_of(job) == 103 + 67


def test_attempts_at_the_same_time_count_once(job: Job) -> None:
    ran(job, 0, 100)
    ran(job, 50, 120)
    ran(job, 60, 70)
    assert seconds_of(job) == 120


def test_the_steps_of_a_job_count_as_well(job: Job, people: People) -> None:
    step = make_job(kind="train", parent=job, project=people.project, by=people.owner, state="completed")
    ran(job, 0, 10)
    ran(step, 100, 105)
    assert seconds_of(job) == 15


def test_a_job_without_attempts_ran_from_its_start_to_its_end(job: Job) -> None:
    assert seconds_of(job) == 67


def test_a_search_by_a_script_outside_ran_from_its_start_to_its_end(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(kind="external_search", payload_json={"outside": OUTSIDE})
    ran(job, 210, 211)
    ran(job, 240, 241)
    assert seconds_of(job) == 67


def test_a_job_that_has_not_ended_has_no_time(job: Job) -> None:
    ran(job, 0, 100)
    Job.objects.filter(pk=job.pk).update(finished=None, state="running")
    assert seconds_of(job) is None


def test_a_list_of_jobs_has_the_time_of_each(job: Job, people: People) -> None:
    other = make_job(kind="train", project=people.project, by=people.owner, state="stopped")
    Job.objects.filter(pk=other.pk).update(started=at(0), finished=at(40))
    ran(job, 0, 30)
    ran(other, 0, 20)
    rows = list(Job.objects.filter(pk__in=[job.pk, other.pk]).order_by("pk"))
    assert [row.seconds for row in queries.jobs_out(rows)] == [30, 20]
