"""A search of the project, for the tests of its pages."""

import pytest
from django.test import Client

from jobs.models import Job
from tests.factories import (
    SEARCH,
    make_experiment,
    make_job,
    make_trials,
)
from tests.people import People, browser_of
from tests.web.searches import DROPOUT, OPTIMIZER, searching


@pytest.fixture
def search(people: People) -> Job:
    experiment = make_experiment(project=people.project, by=people.owner)
    job = make_job(experiment=experiment, by=people.owner, state="running")
    make_trials(job, 2)
    return job


@pytest.fixture
def wide_search(people: People) -> Job:
    return searching(people, [*SEARCH["search"]["space"], DROPOUT, OPTIMIZER])


@pytest.fixture
def browser(people: People, search: Job) -> Client:
    return browser_of(people.owner)
