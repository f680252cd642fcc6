"""The pages of a job and its trials, without a browser."""

import pytest
from django.test import Client

from jobs.models import Job
from tests.factories import make_experiment, make_job, make_trials
from tests.people import People, browser_of
from webapp.pages.job_tabs import TABS


@pytest.fixture
def search(people: People) -> Job:
    experiment = make_experiment(project=people.project, by=people.owner)
    job = make_job(experiment=experiment, by=people.owner, state="running")
    make_trials(job, 2)
    return job


@pytest.fixture
def browser(people: People, search: Job) -> Client:
    return browser_of(people.owner)


@pytest.mark.parametrize("tab", [*TABS, "nonsense"])
def test_every_tab_is_shown_and_one_that_is_not_is_the_overview(
    browser: Client, search: Job, tab: str
) -> None:
    assert browser.get(f"/jobs/{search.pk}", {"tab": tab}).status_code == 200


def test_a_trial_is_shown_beside_the_best(browser: Client, search: Job) -> None:
    page = browser.get(f"/jobs/{search.pk}/trials/1")
    assert [tuple(row) for row in page.context["rows"]] == [("units", 16, 32)]


def test_a_configuration_is_queued_by_hand(browser: Client, search: Job) -> None:
    answer = browser.post(f"/jobs/{search.pk}/trials", {"value-units": "48"})
    assert (answer.status_code, answer["Location"]) == (303, f"/jobs/{search.pk}?tab=trials")
    assert search.trials.get(number=3).values == {"units": 48}


def test_what_is_no_number_is_refused(browser: Client, search: Job) -> None:
    assert browser.post(f"/jobs/{search.pk}/trials", {"value-units": "many"}).status_code == 422
    assert search.trials.count() == 2


def test_a_cursor_of_another_list_is_refused(browser: Client) -> None:
    assert browser.get("/jobs", {"cursor": "x"}).status_code == 422
