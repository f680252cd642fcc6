"""Commands to several jobs: a page asks first and shows what each loses; the answer gives them."""

from typing import Any

import pytest

from jobs.models import Job
from tests.factories import SEARCH, make_attempt, make_experiment, make_job, make_worker
from tests.markup import one_line
from tests.people import People, browser_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def jobs(people: People) -> list[Job]:
    experiment = make_experiment(project=people.project, by=people.owner, spec=SEARCH)
    rows = [
        make_job(by=people.owner, experiment=experiment, state=state, title=f"digits {state}")
        for state in ("running", "running", "completed")
    ]
    worker = make_worker()
    for row in rows[:2]:
        make_attempt(row, worker)  # which the worker pauses or ends
    return rows


def desired(jobs: list[Job]) -> list[str]:
    return [Job.objects.get(pk=job.pk).desired for job in jobs]


def test_the_question_lists_the_jobs_and_leaves_out_those_that_cannot(
    people: People, jobs: list[Job]
) -> None:
    body: dict[str, Any] = {"what": "pause", "job": [job.pk for job in jobs]}
    page = one_line(browser_of(people.member).get("/jobs/orders", body))
    assert "Pause 2 jobs?" in page
    assert "Writes a checkpoint and frees its slots" in page
    assert f"digits completed ({jobs[2].pk})" in page.split("Left out")[1]
    assert desired(jobs) == ["running", "running", "running"]


def test_the_answer_pauses_them_and_returns_to_the_list(people: People, jobs: list[Job]) -> None:
    body: dict[str, Any] = {
        "what": "pause",
        "job": [job.pk for job in jobs[:2]],
        "next": "/jobs?state=running",
    }
    answer = browser_of(people.member).post("/jobs/orders", body)
    assert (answer.status_code, answer["Location"]) == (303, "/jobs?state=running")
    assert desired(jobs) == ["paused", "paused", "running"]


def test_the_refusal_of_one_job_does_not_stop_the_others(people: People, jobs: list[Job]) -> None:
    body: dict[str, Any] = {"what": "stop", "job": [job.pk for job in jobs], "next": "/jobs"}
    page = one_line(browser_of(people.member).post("/jobs/orders", body, follow=True))
    assert "2 jobs stop after a checkpoint." in page
    assert f"Job {jobs[2].pk}: job {jobs[2].pk} is completed" in page


def test_a_loss_is_named_before_jobs_are_killed(people: People, jobs: list[Job]) -> None:
    page = one_line(browser_of(people.member).get(f"/jobs/orders?what=kill&job={jobs[0].pk}"))
    assert f"Kill job {jobs[0].pk}?" in page
    assert "Its work since the last checkpoint is lost." in page


def test_without_a_selection_the_list_says_so(people: People) -> None:
    page = one_line(browser_of(people.member).get("/jobs/orders?what=pause", follow=True))
    assert "Select the jobs to pause first." in page


@pytest.mark.parametrize(
    ("query", "status"),
    [("what=fly&job=1", 422), ("job=1", 422), ("what=pause&job=none", 422), ("what=pause&job=99999999", 404)],
)
def test_a_wrong_request_is_refused(people: People, query: str, status: int) -> None:
    assert browser_of(people.member).get(f"/jobs/orders?{query}").status_code == status


def test_a_viewer_and_a_stranger_give_no_commands(people: People, jobs: list[Job]) -> None:
    body: dict[str, Any] = {"what": "pause", "job": [job.pk for job in jobs[:2]]}
    page = one_line(browser_of(people.viewer).get("/jobs/orders", body))
    assert "No job to pause" in page
    browser_of(people.viewer).post("/jobs/orders", body)
    assert browser_of(people.stranger).post("/jobs/orders", body).status_code == 404
    assert desired(jobs) == ["running", "running", "running"]
