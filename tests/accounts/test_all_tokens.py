"""Administrators see all tokens, filter and sort them, and revoke them; no secret is shown."""

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from jobs import clock
from jobs.actions.people import people as accounts
from jobs.actions.people import service_tokens, tokens
from jobs.models import ApiToken, User
from tests.people import People, browser_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(people: People) -> Client:
    return browser_of(people.administrator)


@pytest.fixture
def made(people: People) -> dict[str, str]:
    """Secrets by the names of their tokens."""

    def make(user: User, name: str, *scopes: str) -> str:
        return tokens.create(user, by=user, scopes=scopes, name=name)[1]

    secrets = {
        "import": make(people.member, "import", "read", "write"),
        "report": make(people.viewer, "report", "read"),
        "gone": make(people.stranger, "gone", "predict"),
        "replica": service_tokens.create_credential("replica", by=None),
    }
    accounts.set_active(people.stranger, False, by=people.administrator)
    now = clock.now()
    ApiToken.objects.filter(name="import").update(last_used=now - dt.timedelta(days=100))
    ApiToken.objects.update(created=now - dt.timedelta(days=200))
    ApiToken.objects.filter(name="report").update(last_used=now, expires=now - dt.timedelta(days=1))
    return secrets


def listed(browser: Client, **parameters: Any) -> list[str]:
    items = browser.get("/api/v1/tokens/all", parameters).json()["items"]
    return [item["name"] for item in items]


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ({}, {"import", "report", "gone", "replica"}),
        ({"owner": "memb"}, {"import"}),
        ({"scope": "read"}, {"import", "report"}),
        ({"scope": "serve"}, {"replica"}),
        ({"state": "valid"}, {"import", "replica"}),
        ({"state": "expired"}, {"report"}),
        ({"state": "stopped"}, {"gone"}),
        ({"unused_days": 90}, {"import", "gone", "replica"}),
        ({"unused_days": 150}, {"gone", "replica"}),
    ],
)
def test_the_list_is_filtered_alike_by_rest_and_on_the_page(
    browser: Client, made: dict[str, str], parameters: dict[str, Any], names: set[str]
) -> None:
    assert set(listed(browser, **parameters)) == names
    query = {"unused" if name == "unused_days" else name: value for name, value in parameters.items()}
    page = browser.get("/tokens", query).content.decode()
    if parameters.get("unused_days") != 150:
        assert {name for name in made if f">{name} <code>" in page} == names


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("-used", ["report", "import", "replica", "gone"]),
        ("owner", ["replica", "import", "gone", "report"]),
        ("name", ["gone", "import", "replica", "report"]),
        ("ends", ["report", "import", "gone", "replica"]),
        ("-created", ["replica", "gone", "report", "import"]),
    ],
)
def test_the_list_is_sorted(browser: Client, made: dict[str, str], sort: str, names: list[str]) -> None:
    assert listed(browser, sort=sort) == names
    page = browser.get("/tokens", {"sort": sort}).content.decode()
    assert sorted(made, key=lambda name: page.index(f">{name} <code>")) == names


def test_pages_of_a_sorted_list_have_each_token_once(browser: Client, made: dict[str, str]) -> None:
    names: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        answer = browser.get("/api/v1/tokens/all", {"sort": "used", "limit": "1", **cursor}).json()
        names += [item["name"] for item in answer["items"]]
        if answer["next"] is None:
            break
        cursor = {"cursor": answer["next"]}
    assert names == ["gone", "replica", "import", "report"]


def test_owner_projects_and_last_use_are_shown_and_no_secret(browser: Client, made: dict[str, str]) -> None:
    answer = browser.get("/api/v1/tokens/all", {"owner": "member"})
    (row,) = answer.json()["items"]
    assert (row["owner"], row["projects"], row["service"], row["owner_active"]) == (
        "member",
        ["yard"],
        False,
        True,
    )
    assert row["last_used"]
    for text in (answer.content.decode(), browser.get("/tokens").content.decode()):
        assert not any(secret in text for secret in made.values())


@pytest.mark.parametrize("name", ["member", "owner", "approver", "viewer"])
def test_others_see_only_their_own(people: People, made: dict[str, str], name: str) -> None:
    browser = browser_of(getattr(people, name))
    assert browser.get("/api/v1/tokens/all").status_code == 403
    page = browser.get("/tokens", {"owner": ""}).content.decode()
    own = {"member": {"import"}, "viewer": {"report"}}.get(name, set())
    assert {name for name in made if f">{name} <code>" in page} == own


@pytest.mark.parametrize(
    "parameters",
    [{"scope": "fly"}, {"state": "odd"}, {"unused_days": -1}, {"unused_days": 10**9}, {"sort": "secret"}],
)
def test_unknown_parameters_are_refused(browser: Client, parameters: dict[str, Any]) -> None:
    assert browser.get("/api/v1/tokens/all", parameters).status_code == 422
    assert browser.get("/tokens", parameters).status_code == 200


def test_the_list_costs_the_same_statements_for_more_tokens(
    browser: Client, people: People, made: dict[str, str], django_assert_num_queries: Any
) -> None:

    browser.get("/tokens")
    with CaptureQueriesContext(connection) as few:
        browser.get("/tokens")
    for number in range(5):
        tokens.create(people.owner, by=people.owner, scopes=["read"], name=f"more {number}")
    with django_assert_num_queries(len(few)):
        browser.get("/tokens")


def test_the_last_use_is_written_at_most_once_a_minute(
    made: dict[str, str], django_assert_num_queries: Any
) -> None:
    tokens.authenticate(made["import"])
    with django_assert_num_queries(1):
        tokens.authenticate(made["import"])
