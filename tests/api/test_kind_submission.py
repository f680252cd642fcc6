"""Jobs without an experiment: a kind must allow them explicitly."""

from typing import Any

import pytest

from jobs.kinds import KINDS
from jobs.models import Job
from tests.people import People, browser_of, make_people


@pytest.fixture
def people(db: None) -> People:
    return make_people()


def submitted(people: People, kind: str, by: str = "member") -> Any:
    body = {"kind": kind, "project": "yard", "payload": {}}
    return browser_of(getattr(people, by)).post("/api/v1/jobs", body, content_type="application/json")


@pytest.mark.parametrize("kind", [*KINDS, "export", "nonsense"])
def test_kinds_cannot_be_submitted_without_an_experiment_by_default(people: People, kind: str) -> None:
    answer = submitted(people, kind)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/kind")
    assert browser_of(people.member).get(f"/jobs/new/{kind}").status_code == 404
    assert not Job.objects.exists()


@pytest.mark.parametrize(("by", "status"), [("viewer", 403), ("stranger", 404)])
def test_permissions_are_checked_before_the_kind(people: People, by: str, status: int) -> None:
    assert submitted(people, "search", by).status_code == status


def test_external_searches_are_listed_as_searches_and_future_kinds_are_empty(people: People) -> None:
    browser = browser_of(people.member)
    search = Job.objects.create(project=people.project, kind="external_search", payload_json={"outside": {}})
    for query, ids in (({"kind": "search"}, [search.pk]), ({"kind": "export"}, []), ({"kind": "train"}, [])):
        assert [job["id"] for job in browser.get("/api/v1/jobs", query).json()["items"]] == ids
    assert browser.get(f"/api/v1/jobs/{search.pk}").json()["kind"] == "search"
    assert browser.get("/api/v1/jobs", {"kind": "external_search"}).status_code == 422
