"""A copied database opens no session, and a session ends for good."""

import pytest
from django.conf import settings
from django.test import Client

from jobs.actions.people.people import end_sessions
from jobs.models import Session
from tests.people import PASSWORD, People, browser_of


def key_of(browser: Client) -> str:
    return browser.cookies[settings.SESSION_COOKIE_NAME].value


def who(browser: Client) -> str | None:
    name: str | None = browser.get("/account/session").json()["user"]
    return name


def opened_with(key: str) -> Client:
    browser = Client()
    browser.cookies[settings.SESSION_COOKIE_NAME] = key
    return browser


def test_a_row_has_the_hash_of_the_key_and_opens_nothing(people: People) -> None:
    browser = browser_of(people.member)
    (row,) = Session.objects.values()
    assert key_of(browser) not in str(row)
    assert who(opened_with(key_of(browser))) == "member"
    assert who(opened_with(row["session_key"])) is None


def test_a_key_that_the_client_has_chosen_is_not_used(people: People) -> None:
    browser = opened_with("chosen-by-the-client")
    browser.force_login(people.member)
    assert key_of(browser) != "chosen-by-the-client"
    assert who(opened_with("chosen-by-the-client")) is None


def test_all_sessions_of_a_person_end_except_the_one_that_is_kept(people: People) -> None:
    current, other, elsewhere = (browser_of(user) for user in (people.member, people.member, people.owner))
    assert end_sessions(people.member, keep=key_of(current)) == 1
    assert [who(browser) for browser in (current, other, elsewhere)] == ["member", None, "owner"]


@pytest.mark.django_db(transaction=True)
async def test_the_asynchronous_methods_use_the_hash_too() -> None:
    store = Session.get_session_store_class()()
    await store.aset("color", "blue")
    await store.asave()
    assert store.session_key is not None
    again = Session.get_session_store_class()(store.session_key)
    assert await again.aget("color") == "blue"
    await again.adelete()
    assert not await Session.objects.aexists()


def test_the_account_page_lists_the_sessions_of_the_user(people: People) -> None:
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
    browser_of(people.owner)
    browser = Client(headers={"User-Agent": agent})
    for client in (Client(headers={"User-Agent": "curl/8"}), browser):
        login = {"login": "member", "password": PASSWORD}
        client.post("/accounts/login/", login, REMOTE_ADDR="10.1.2.3")
    page = browser.get("/account/")
    sessions = [
        (session.is_current, session.browser, session.address) for session in page.context["sessions"]
    ]
    assert sessions == [(True, "Firefox on Linux", "10.1.2.3"), (False, "another program", "10.1.2.3")]
    assert "this browser" in page.content.decode()
    browser.post("/account/end-sessions")
    assert list(Session.objects.values_list("user__username", flat=True)) == ["owner"]
