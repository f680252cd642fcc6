"""GET /queue/pools, which scripts of clusters read; labels over REST and on pages."""

from typing import Any

import pytest
from django.test import Client

from tests import factories
from tests.markup import text_of
from tests.people import People, browser_of

pytestmark = pytest.mark.django_db


def test_members_read_the_queues_of_all_pools(people: People) -> None:
    factories.make_worker(pool="gpu", slots=3)
    answer = browser_of(people.member).get("/api/v1/queue/pools").json()
    assert answer["next"] is None
    (item,) = answer["items"]
    expected = {"pool": "gpu", "queued": 0, "oldest_seconds": None, "slots": 3, "busy": 0, "free": 3}
    assert expected.items() <= item.items()


def test_a_pool_without_anything_is_an_empty_queue(people: People) -> None:
    (item,) = browser_of(people.member).get("/api/v1/queue/pools?pool=none").json()["items"]
    assert (item["pool"], item["queued"], item["workers"]) == ("none", 0, 0)


def test_a_name_that_no_pool_has_is_refused(people: People) -> None:
    response = browser_of(people.member).get("/api/v1/queue/pools?pool=GPU%201")
    assert response.status_code == 422
    assert "pool" in response.json()["errors"][0]["pointer"]


def test_strangers_read_no_queue() -> None:
    assert Client().get("/api/v1/queue/pools").status_code == 401


def test_a_job_is_returned_with_its_labels_and_a_change_of_them_is_checked(people: People) -> None:
    browser = browser_of(people.owner)
    experiment = factories.make_experiment(project=people.project, by=people.owner)
    job = factories.make_job(by=people.owner, experiment=experiment, labels={"gpu": "h200"})
    assert browser.get(f"/api/v1/jobs/{job.pk}").json()["labels"] == {"gpu": "h200"}

    def change(labels: Any) -> Any:
        return browser.patch(f"/api/v1/jobs/{job.pk}", {"labels": labels}, content_type="application/json")

    refused = change({"a b": "c"})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"].startswith("/labels")
    changed = change({"gpu": "a100"}).json()
    assert changed["labels"] == {"gpu": "a100"}
    assert [warning["pointer"] for warning in changed["warnings"]] == ["/pool"]
    factories.make_worker()
    assert [warning["pointer"] for warning in change({"gpu": "b"}).json()["warnings"]] == ["/labels"]
    assert change({}).json()["labels"] == {}


def test_the_pages_of_a_worker_and_of_the_queue_show_labels_and_limits(people: People) -> None:
    browser = browser_of(people.owner)
    worker = factories.make_worker(
        labels={"gpu": "h200"},
        info={"idle_exit_seconds": 600, "max_life_seconds": 14_400, "seconds_left": 3_600, "refuses": "Why."},
    )
    answer = browser.get(f"/api/v1/workers/{worker.pk}").json()
    assert (answer["labels"], answer["info"]["max_life_seconds"]) == ({"gpu": "h200"}, 14_400)
    for page in (f"/workers/{worker.pk}", "/workers"):
        text = text_of(browser.get(page))
        assert "gpu=h200" in text
        assert "takes no work" in text
    text = text_of(browser.get(f"/workers/{worker.pk}"))
    assert "after 10 min without work" in text
    assert "in 1 h at the latest" in text
    experiment = factories.make_experiment(project=people.project, by=people.owner)
    job = factories.make_job(by=people.owner, experiment=experiment, labels={"gpu": "h200"})
    assert "gpu=h200" in text_of(browser.get("/queue"))
    assert "gpu=h200" in text_of(browser.get(f"/jobs/{job.pk}"))
