"""Administrators set how the users' own code may run."""

from typing import Any

import pytest
from django.test import Client

from jobs.actions.code import installation_settings
from jobs.actions.runs import workers
from jobs.errors import StaleState
from jobs.messages.sandbox import Level
from jobs.models import AuditEvent, InstallationSettings, Project
from jobs.queries.code import installation
from tests.people import People, browser_of

SETTINGS, PROJECT = "/api/v1/settings", "/api/v1/projects/yard/sandbox"


@pytest.fixture
def admin(people: People) -> Client:
    return browser_of(people.administrator)


def patch(client: Client, path: str, body: Any, seen: str = "*") -> Any:
    return client.patch(path, body, "application/json", headers={"If-Match": seen})


def test_landlock_is_the_minimum_until_an_administrator_changes_it(admin: Client) -> None:
    assert admin.get(SETTINGS).json() == {"sandbox_minimum": "landlock"}
    assert InstallationSettings.objects.count() == 0
    assert patch(admin, SETTINGS, {"sandbox_minimum": "bubblewrap"}).json() == {
        "sandbox_minimum": "bubblewrap"
    }
    assert installation.sandbox_minimum() is Level.BUBBLEWRAP
    patch(admin, SETTINGS, {"sandbox_minimum": "bubblewrap"})
    (row,) = AuditEvent.objects.filter(action="settings.sandbox_minimum")
    assert (row.detail["was"], row.detail["to"]) == ("landlock", "bubblewrap")


def test_a_minimum_of_an_earlier_release_counts_as_bubblewrap_until_it_is_saved_again(admin: Client) -> None:
    InstallationSettings.objects.create(pk=installation.KEY, sandbox_minimum="namespaces")
    assert installation.sandbox_minimum() is Level.BUBBLEWRAP
    read = admin.get(SETTINGS)
    assert (read.json(), admin.get(PROJECT).json()["minimum"]) == (
        {"sandbox_minimum": "bubblewrap"},
        "bubblewrap",
    )
    words = "It was set to namespaces, a level of earlier releases. That counts as bubblewrap"
    assert words in " ".join(admin.get("/settings").content.decode().split())
    form = {"sandbox_minimum": "bubblewrap", "seen": "bubblewrap"}
    assert admin.post("/settings", form).status_code == 303
    assert "namespaces" not in admin.get("/settings").content.decode()
    (row,) = AuditEvent.objects.filter(action="settings.sandbox_minimum")
    assert (row.detail["was"], row.detail["to"]) == ("namespaces", "bubblewrap")


def test_code_of_users_has_no_network_until_an_administrator_allows_it(admin: Client) -> None:
    assert admin.get(PROJECT).json() == {"network": False, "minimum": "landlock"}
    assert patch(admin, PROJECT, {"network": True}).json()["network"] is True
    patch(admin, PROJECT, {"network": True})
    (row,) = AuditEvent.objects.filter(action="project.network")
    assert row.detail["allowed"] is True
    assert not Project.objects.get(slug="elsewhere").network


def test_a_change_that_someone_else_made_meanwhile_is_not_overwritten(admin: Client, people: People) -> None:
    seen = admin.get(SETTINGS)["ETag"]
    assert patch(admin, SETTINGS, {"sandbox_minimum": "process"}, seen).status_code == 200
    refused = patch(admin, SETTINGS, {"sandbox_minimum": "bubblewrap"}, seen)
    assert (refused.status_code, refused.json()["code"]) == (412, "stale_etag")
    seen = admin.get(PROJECT)["ETag"]
    patch(admin, PROJECT, {"network": True}, seen)
    assert patch(admin, PROJECT, {"network": False}, seen).status_code == 412
    with pytest.raises(StaleState):
        installation_settings.change_network(people.project, False, seen=False, by=people.administrator)
    assert Project.objects.get(slug="yard").network
    assert installation.sandbox_minimum() is Level.PROCESS


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        (SETTINGS, {"sandbox_minimum": "chroot"}, "/sandbox_minimum"),
        (SETTINGS, {"sandbox_minimum": "namespaces"}, "/sandbox_minimum"),
        (SETTINGS, {}, "/sandbox_minimum"),
        (SETTINGS, {"sandbox_minimum": "process", "x": 1}, "/x"),
        (PROJECT, {"network": "perhaps"}, "/network"),
    ],
)
def test_an_invalid_setting_is_refused_with_its_field(
    admin: Client, path: str, body: Any, pointer: str
) -> None:
    refused = patch(admin, path, body)
    assert refused.status_code == 422
    assert [error["pointer"] for error in refused.json()["errors"]] == [pointer]


@pytest.mark.parametrize("who", ["owner", "trainer"])
def test_others_see_them_and_cannot_change_them(people: People, who: str) -> None:
    browser = browser_of(getattr(people, who))
    assert browser.get(SETTINGS).status_code == browser.get(PROJECT).status_code == 200
    assert patch(browser, SETTINGS, {"sandbox_minimum": "process"}).status_code == 403
    assert patch(browser, PROJECT, {"network": True}).status_code == 403
    assert browser.get("/settings").status_code == 403
    assert browser.post("/p/yard/network", {"network": "on", "seen": "0"}).status_code == 403
    page = browser.get("/p/yard/settings").content.decode()
    assert "without network" in " ".join(page.split())
    assert "Save network" not in page


def test_the_page_changes_the_minimum_and_shows_which_workers_are_too_weak(admin: Client) -> None:
    states = [
        {"level": "bubblewrap", "offered": False, "reason": "it is not installed"},
        {"level": "landlock", "offered": True, "reason": ""},
    ]
    info: dict[str, Any] = {"sandbox": states}
    workers.register(name="small", host="h", pid=1, pool="default", slots=1, devices=[], info=info)
    assert "too weak" not in admin.get("/settings").content.decode()
    form = {"sandbox_minimum": "bubblewrap", "seen": "landlock"}
    assert admin.post("/settings", form).status_code == 303
    page = admin.get("/settings").content.decode()
    assert "too weak" in page
    stale = admin.post("/settings", form)
    assert (stale.status_code, "was changed to bubblewrap" in stale.content.decode()) == (409, True)
    assert admin.post("/settings", form | {"sandbox_minimum": "none"}).status_code == 422
    worker = admin.get("/workers").content.decode()
    assert "small" in worker


def test_the_settings_of_a_project_allow_network(admin: Client) -> None:
    assert admin.post("/p/yard/network", {"network": "on", "seen": "0"}).status_code == 303
    assert Project.objects.get(slug="yard").network
    assert "may connect to other hosts" in " ".join(admin.get("/p/yard/settings").content.decode().split())
    assert "The yard" in admin.get("/settings").content.decode()
    stale = admin.post("/p/yard/network", {"seen": "0"})
    assert (stale.status_code, "changed meanwhile" in stale.content.decode()) == (409, True)
    assert Project.objects.get(slug="yard").network


def test_a_worker_page_shows_the_levels_with_reasons(people: People) -> None:
    states = [{"level": "bubblewrap", "offered": False, "reason": "it is not installed"}]
    row = workers.register(
        name="w", host="h", pid=1, pool="default", slots=1, devices=[], info={"sandbox": states}
    )
    browser = browser_of(people.viewer)
    assert "it is not installed" in browser.get(f"/workers/{row.pk}").content.decode()
    assert browser.get(f"/api/v1/workers/{row.pk}").json()["info"]["sandbox"] == states
