"""A trainer's requests, own code whose search is tuned, and a worker that offers a sandbox."""

import pytest
from django.test import Client

from tests import factories, own_code
from tests.code.dry_builds import stored
from tests.jobs.yard import PretendWorker
from tests.people import People, browser_of


@pytest.fixture
def api(people: People) -> Client:
    factories.make_dataset("flowers", project=people.project, by=people.member)
    return browser_of(people.trainer)


@pytest.fixture
def code(api: Client) -> str:
    return stored(api, own_code.TUNED_FIT + own_code.RETURNED_OBJECTIVE + own_code.SEARCH_OF_LAYERS)


@pytest.fixture
def worker(people: People) -> PretendWorker:
    pretend_worker = PretendWorker(slots=1)
    pretend_worker.row.info = {"sandbox": [{"level": "landlock", "offered": True}]}
    pretend_worker.row.save(update_fields=["info"])
    return pretend_worker
