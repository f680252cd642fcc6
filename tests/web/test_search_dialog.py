"""The search dialog finds pages, actions and settings by their names, and help by headings and text."""

from typing import Any

import pytest
from django.test import Client

from jobs.models import Endpoint, Job, User
from tests.factories import make_experiment, make_job, make_model, make_trials
from tests.markup import one_line
from tests.people import People, browser_of

pytestmark = pytest.mark.django_db


WORDS = (
    *("new", "find", "upload", "project", "account", "settings", "people", "audit", "endpoints", "password"),
    *("members", "sandbox", "network", "pause", "resume", "stop", "kill", "finish", "retry", "roll", "take"),
    *("edit experiment", "delete job"),
)
NAMED = ("page", "action", "setting")
"""The kinds of results that are not rows of the database or help."""


def found(browser: Client, text: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = browser.get("/search", {"q": text}).json()["items"]
    return items


def titles(user: User, text: str, *kinds: str) -> list[str]:
    return [item["title"] for item in found(browser_of(user), text) if item["kind"] in (kinds or NAMED)]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Queue", "Queue"),
        ("tok", "Tokens"),
        ("Find a good model", "Find a good model"),
        ("upload data", "Upload a data set"),
        ("new experiment", "New experiment"),
        ("members", "Project settings"),
        ("approvals", "Approvals"),
        ("second factor", "Account"),
        ("password", "Password"),
        ("sessions", "Sessions"),
        ("quotas", "Quotas"),
        ("decision records", "For developers"),
    ],
)
def test_a_page_is_found_by_its_name_and_opens(people: People, text: str, title: str) -> None:
    browser = browser_of(people.owner)
    pages = {item["title"]: item["url"] for item in found(browser, text) if item["kind"] in NAMED}
    address, _, anchor = pages[title].partition("#")
    page = browser.get(address)
    assert page.status_code == 200
    assert not anchor or f'id="{anchor}"' in page.content.decode()


def test_each_page_that_is_found_may_be_opened_by_the_person(people: People) -> None:
    project, owner = people.project, people.owner
    experiment = make_experiment(project=project, by=owner)
    for state in ("running", "paused", "failed"):
        make_trials(make_job(by=owner, experiment=experiment, state=state, title="digits"), 1)
    for user in (people.viewer, people.approver, people.stranger, people.owner, people.administrator):
        browser = browser_of(user)
        listed = {item["url"]: item for text in WORDS for item in found(browser, text)}
        for address, item in listed.items():
            if item["kind"] in NAMED:
                assert browser.get(address).status_code == 200, (user.username, item)


def test_pages_that_a_person_may_not_open_are_not_found(people: People) -> None:
    assert titles(people.viewer, "upload data") == []
    assert titles(people.viewer, "find a good model") == []
    assert titles(people.owner, "people") == []
    assert titles(people.administrator, "people") == ["People"]


def test_a_person_without_a_project_finds_no_page_of_projects(people: People) -> None:
    alone = User.objects.create_user("alone")
    assert titles(alone, "new experiment") == []
    assert titles(alone, "queue") == ["Queue"]


@pytest.fixture
def running(people: People) -> Job:
    experiment = make_experiment(project=people.project, by=people.owner)
    return make_job(by=people.owner, experiment=experiment, state="running", title="digits, mlp")


@pytest.mark.parametrize("text", ["pause job {}", "pause {}", "Pause digits", "pau job {}", "pause"])
def test_a_command_to_a_job_is_found_and_asks_first(people: People, running: Job, text: str) -> None:
    browser = browser_of(people.member)
    [action] = [item for item in found(browser, text.format(running.pk)) if item["kind"] == "action"]
    assert (action["title"], action["hint"]) == (f"Pause job {running.pk}", "digits, mlp")
    assert f"Pause job {running.pk}?" in one_line(browser.get(action["url"]))
    running.refresh_from_db()
    assert running.desired == "running"


def test_only_commands_that_a_job_accepts_now_are_found(people: People, running: Job) -> None:
    for verb, is_found in (
        ("pause", True),
        ("stop", True),
        ("kill", True),
        ("resume", False),
        ("retry", False),
    ):
        assert bool(titles(people.member, f"{verb} job {running.pk}", "action")) is is_found, verb


@pytest.mark.parametrize("name", ["viewer", "approver", "stranger"])
def test_who_may_not_write_finds_no_commands(people: People, running: Job, name: str) -> None:
    for verb in ("pause", "stop", "kill", "delete", "edit"):
        assert titles(getattr(people, name), f"{verb} job {running.pk}", "action") == []


def test_an_experiment_is_edited_and_an_ended_job_deleted_by_words(people: People) -> None:
    experiment = make_experiment("leaves", project=people.project, by=people.owner)
    job = make_job(by=people.owner, experiment=experiment, state="completed", title="leaves")
    assert titles(people.owner, "edit leaves", "action") == ["Edit leaves"]
    assert titles(people.owner, f"delete job {job.pk}", "action") == [f"Delete job {job.pk}"]
    assert titles(people.viewer, f"delete job {job.pk}", "action") == []


def test_an_endpoint_is_rolled_back_by_words_by_those_who_may(people: People) -> None:
    model = make_model("digits", project=people.project, by=people.owner)
    Endpoint.objects.filter(model=model).update(production=model.versions.get())
    assert titles(people.approver, "roll back digits", "action") == ["Roll back digits"]
    assert titles(people.member, "roll back digits", "action") == []


def test_help_is_found_by_its_text_and_leads_to_the_whole_result(people: People) -> None:
    help_items = [item for item in found(browser_of(people.viewer), "token") if item["kind"] == "help"]
    assert help_items[5]["url"] == "/docs?q=token"
    assert all(not item["url"].startswith("/docs/decisions") for item in help_items[:6])
    assert found(browser_of(people.viewer), "TRAINYARD_SERVING_OPEN")[0]["kind"] == "help"


def test_a_guide_is_found_by_its_title_and_by_a_heading(people: People) -> None:
    browser = browser_of(people.viewer)
    guide = next(item for item in found(browser, "your first search") if item["kind"] == "help")
    assert guide["url"] == "/docs/guide/1-first-search"
    parts = [item for item in found(browser, "roll back") if item["kind"] == "help"]
    assert {
        "kind": "help",
        "title": "Roll back",
        "hint": "Approval",
        "url": "/docs/guide/3-approval#roll-back",
    } in parts


@pytest.mark.parametrize("text", ["data", "request", "search", "register", "a", "of"])
def test_the_part_of_a_guide_that_is_found_is_on_its_page(people: People, text: str) -> None:
    browser = browser_of(people.viewer)
    parts = [item for item in found(browser, text) if item["kind"] == "help"]
    assert parts
    for part in parts:
        address, _, anchor = part["url"].partition("#")
        page = browser.get(address).content.decode()
        assert not anchor or page.count(f'id="{anchor}"') == 1, part
