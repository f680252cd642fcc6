"""The search dialog finds pages by their names, and help by its titles and headings."""

from typing import Any

import pytest
from django.test import Client

from jobs.models import User
from tests.people import People, browser_of

pytestmark = pytest.mark.django_db


WORDS = ("new", "find", "upload", "project", "account", "settings", "people", "audit", "endpoints")


def found(browser: Client, text: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = browser.get("/search", {"q": text}).json()["items"]
    return items


def titles(user: User, text: str, kind: str = "page") -> list[str]:
    return [item["title"] for item in found(browser_of(user), text) if item["kind"] == kind]


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
    ],
)
def test_a_page_is_found_by_its_name_and_opens(people: People, text: str, title: str) -> None:
    browser = browser_of(people.owner)
    pages = {item["title"]: item["url"] for item in found(browser, text) if item["kind"] == "page"}
    assert browser.get(pages[title]).status_code == 200


def test_each_page_that_is_found_may_be_opened_by_the_person(people: People) -> None:
    for user in (people.viewer, people.approver, people.stranger):
        browser = browser_of(user)
        listed = {item["url"]: item for text in WORDS for item in found(browser, text)}
        for address, item in listed.items():
            if item["kind"] == "page":
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


def test_a_guide_is_found_by_its_title_and_by_a_heading(people: People) -> None:
    browser = browser_of(people.viewer)
    [guide] = [item for item in found(browser, "your first search") if item["kind"] == "help"]
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
