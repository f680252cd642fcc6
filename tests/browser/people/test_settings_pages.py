"""The settings of the installation, and how a project's page and a job's page show sandboxes."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page

from jobs.actions.runs import workers
from jobs.models import Project
from tests.browser.looking import Look
from tests.people import People

Open = Callable[..., Page]

STATES = [
    {"level": "bubblewrap", "offered": False, "reason": "bubblewrap is not installed"},
    {"level": "landlock", "offered": True, "reason": ""},
    {"level": "process", "offered": True, "reason": ""},
]


def test_an_administrator_raises_the_minimum_and_sees_which_worker_is_too_weak(
    people: People, open_as: Open, look: Look
) -> None:
    info: dict[str, Any] = {"sandbox": STATES}
    workers.register(name="small", host="h", pid=1, pool="default", slots=1, devices=[], info=info)
    Project.objects.filter(slug="elsewhere").update(network=True)
    page = open_as(people.administrator, "/settings")
    look(page, "settings")
    page.get_by_label("Weakest sandbox").select_option("bubblewrap")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Settings saved.").wait_for()
    page.get_by_text("too weak").wait_for()
    page.get_by_role("link", name="small").click()
    page.get_by_text("bubblewrap is not installed").wait_for()
    look(page, "worker with sandboxes")
    page.goto("/p/yard/settings")
    page.get_by_label("Code of users may connect to other hosts").check()
    page.get_by_role("button", name="Save network").click()
    page.get_by_text("Network saved.").wait_for()
    look(page, "project with network")
    assert Project.objects.get(slug="yard").network
