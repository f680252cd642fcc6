"""Administrators set a project's quotas; its members see them and their use."""

from typing import Any

import pytest
from django.test import Client

from jobs.actions.people import quota_changes
from jobs.errors import StaleState
from jobs.models import AuditEvent, Project
from jobs.queries.people.quotas import limits_of, quotas_revision
from tests.people import People, browser_of

QUOTAS = "/api/v1/projects/yard/quotas"
PAGE = "/p/yard/quotas"


@pytest.fixture
def admin(people: People) -> Client:
    return browser_of(people.administrator)


def patch(client: Client, body: Any, seen: str = "*") -> Any:
    return client.patch(QUOTAS, body, "application/json", headers={"If-Match": seen})


def test_a_quota_of_a_project_replaces_the_default_and_null_restores_it(
    admin: Client, people: People, settings: Any
) -> None:
    settings.TRAINYARD_PROJECT_JOBS = 7
    answer = patch(admin, {"jobs": 2, "bytes": 1000})
    assert answer.status_code == 200
    assert answer.json()["jobs"] == {"used": 0, "limit": 2, "default": 7, "is_default": False}
    people.project.refresh_from_db()
    assert (limits_of(people.project).jobs, limits_of(people.project).bytes) == (2, 1000)
    assert patch(admin, {"jobs": None}).json()["jobs"]["limit"] == 7
    assert Project.objects.get(slug="yard").max_bytes == 1000
    assert limits_of(Project.objects.get(slug="elsewhere")).jobs == 7


def test_each_change_is_an_audit_row(admin: Client) -> None:
    patch(admin, {"slots": 3})
    patch(admin, {"slots": 3})
    (row,) = AuditEvent.objects.filter(action="project.quotas")
    assert row.actor is not None
    assert (row.actor.username, row.detail["slots"]) == ("administrator", 3)


def test_a_change_of_quotas_that_someone_else_changed_is_refused(admin: Client, people: People) -> None:
    seen = admin.get(QUOTAS)["ETag"]
    assert patch(admin, {"slots": 3}, seen).status_code == 200
    refused = patch(admin, {"slots": 4}, seen)
    assert (refused.status_code, refused.json()["code"]) == (412, "stale_etag")
    with pytest.raises(StaleState):
        quota_changes.change_quotas(people.project, {"slots": 4}, seen="-.-.-.-.-", by=people.administrator)
    assert Project.objects.get(slug="yard").max_slots == 3


@pytest.mark.parametrize("value", [0, -1, 2**70, "many", 1.5])
def test_a_quota_out_of_range_is_refused_with_its_field(admin: Client, value: Any) -> None:
    refused = patch(admin, {"slots": 2, "bytes": value})
    assert refused.status_code == 422
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/bytes"]
    assert Project.objects.get(slug="yard").max_slots is None


def test_a_project_admin_sees_them_and_cannot_change_them(people: People) -> None:
    browser = browser_of(people.owner)
    assert patch(browser, {"slots": 100}).status_code == 403
    assert browser.post(PAGE, {"slots": "100", "revision": "-.-.-.-.-"}).status_code == 403
    assert browser.patch("/api/v1/projects/yard", {"max_slots": 9}, "application/json").status_code == 422
    assert browser.get(QUOTAS).json()["jobs"]["limit"] == 1000
    page = browser.get("/p/yard/settings").content.decode()
    assert ">Quotas</h2>" in page
    assert "Save quotas" not in page
    assert Project.objects.get(slug="yard").max_slots is None


def test_a_stranger_does_not_see_them(people: People) -> None:
    assert browser_of(people.stranger).get(QUOTAS).status_code == 404


def test_the_settings_page_saves_them(admin: Client, people: People) -> None:
    form = {
        "slots": "8",
        "bytes": "1.5",
        "jobs": "",
        "uploads": "3",
        "events": "5000",
        "revision": quotas_revision(people.project),
    }
    assert admin.post(PAGE, form).status_code == 303
    changed = Project.objects.get(slug="yard")
    assert (changed.max_slots, changed.max_bytes, changed.max_jobs) == (8, 1_500_000_000, None)
    assert (changed.max_uploads, changed.max_events) == (3, 5000)
    page = admin.get("/p/yard/settings").content.decode()
    assert 'value="1.5"' in page
    stale = admin.post(PAGE, form | {"slots": "9"})
    assert (stale.status_code, "were changed meanwhile" in stale.content.decode()) == (409, True)
    bad = admin.post(PAGE, form | {"slots": "0"})
    assert (bad.status_code, Project.objects.get(slug="yard").max_slots) == (422, 8)
