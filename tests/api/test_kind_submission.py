"""Jobs without an experiment: a kind must allow them explicitly."""

import pytest

from jobs.actions.runs.kind_submission import submit_kind
from jobs.errors import BadInput, Forbidden
from jobs.kinds import KINDS
from jobs.kinds.inputs import submittable_kinds
from jobs.models import Job
from tests.people import People, browser_of, make_people


@pytest.fixture
def people(db: None) -> People:
    return make_people()


@pytest.mark.parametrize("kind", [*KINDS, "export", "nonsense"])
def test_a_kind_refuses_submission_unless_it_allows_it(people: People, kind: str) -> None:
    with pytest.raises(BadInput) as refused:
        submit_kind(people.project, kind, {}, by=people.member)
    assert [problem.pointer for problem in refused.value.problems] == ["/kind"]


def test_permission_is_checked_before_the_kind(people: People) -> None:
    with pytest.raises(Forbidden):
        submit_kind(people.project, "search", {}, by=people.viewer)


def test_neither_route_nor_form_exist_without_a_kind_that_allows_submission(people: People) -> None:
    assert not submittable_kinds()
    browser = browser_of(people.member)
    body = {"kind": "search", "project": "yard", "payload": {}}
    assert browser.post("/api/v1/jobs", body, content_type="application/json").status_code == 405
    assert browser.get("/jobs/new/search").status_code == 404
    assert not Job.objects.exists()


def test_external_searches_are_listed_as_searches_and_future_kinds_are_empty(people: People) -> None:
    browser = browser_of(people.member)
    search = Job.objects.create(project=people.project, kind="external_search", payload_json={"outside": {}})
    for query, ids in (({"kind": "search"}, [search.pk]), ({"kind": "export"}, []), ({"kind": "train"}, [])):
        assert [job["id"] for job in browser.get("/api/v1/jobs", query).json()["items"]] == ids
    assert browser.get(f"/api/v1/jobs/{search.pk}").json()["kind"] == "search"
    assert browser.get("/api/v1/jobs", {"kind": "external_search"}).status_code == 422
