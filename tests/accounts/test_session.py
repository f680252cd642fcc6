"""An open page asks about its session: after a login in another tab its entries are neither lost nor sent."""

import pytest
from django.conf import settings
from django.test import Client

from jobs.actions.people.people import end_sessions
from tests.people import PASSWORD, People, browser_of, make_people


@pytest.fixture
def people(db: None) -> People:
    return make_people()


def test_a_page_without_a_session_gets_no_token(client: Client, db: None) -> None:
    answer = client.get("/account/session")
    assert answer.json() == {"user": None, "csrf": None}
    assert answer.headers["Cache-Control"].split(",")[0] == "max-age=0"


def test_a_page_learns_who_is_logged_in_now(people: People) -> None:
    browser = browser_of(people.member)
    page = browser.get("/projects").content.decode()
    assert 'data-user="member"' in page
    browser.force_login(people.owner)
    assert browser.get("/account/session").json()["user"] == "owner"


def test_the_token_of_a_new_login_is_accepted_and_that_of_the_page_is_not(people: People) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(people.member)
    before = browser.get("/account/session").json()["csrf"]
    login = {"login": "member", "password": PASSWORD, "csrfmiddlewaretoken": before}
    end_sessions(people.member)
    assert browser.post("/accounts/login/", login).status_code == 302
    form = {"name": "Mine", "slug": "mine"}
    assert browser.post("/projects/new", {**form, "csrfmiddlewaretoken": before}).status_code == 403
    renewed = browser.get("/account/session").json()["csrf"]
    assert browser.post("/projects/new", {**form, "csrfmiddlewaretoken": renewed}).status_code == 303


def test_a_part_of_a_page_reports_the_end_of_the_session_without_a_reload(people: People) -> None:
    browser = browser_of(people.member)
    browser.logout()
    answer = browser.get("/queue", headers={"HX-Request": "true"})
    assert (answer.status_code, answer.headers["HX-Trigger"]) == (401, "ty:logout")
    assert "HX-Refresh" not in answer.headers


def test_only_a_logout_deletes_the_cookie_of_a_session(people: People) -> None:
    """The response to a request of an earlier session may arrive after a login in another tab."""
    browser = browser_of(people.member)
    end_sessions(people.member)
    late = browser.get("/account/session")
    assert late.json()["user"] is None
    assert settings.SESSION_COOKIE_NAME not in late.cookies
    assert "Cookie" in late.headers["Vary"]
    browser.force_login(people.owner)
    left = browser.post("/accounts/logout/")
    assert left.cookies[settings.SESSION_COOKIE_NAME].value == ""
