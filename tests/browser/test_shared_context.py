"""The tests of this folder share one browser context, yet none finds what another left there."""

from collections.abc import Callable

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Page, expect

from tests.browser.shared_context import SharedContext
from tests.people import People, browser_of

Open = Callable[..., Page]
LEAVE = """() => {
    document.cookie = "left=1";
    localStorage.setItem("left", "1");
    sessionStorage.setItem("left", "1");
    return caches.open("left").then(() => true);
}"""
FOUND = """async () => [
    document.cookie, localStorage.length, sessionStorage.length, (await caches.keys()).length,
]"""


@pytest.mark.parametrize("turn", ["the first test", "the next test"])
def test_a_test_finds_no_session_and_nothing_stored(
    people: People, open_as: Open, server: str, turn: str
) -> None:
    page = open_as(None, "/projects")
    expect(page.get_by_role("navigation", name="Main")).to_have_count(0)
    assert page.evaluate(FOUND) == ["", 0, 0, 0], f"{turn} finds data of another"
    names = [cookie["name"] for cookie in page.context.cookies()]
    assert settings.SESSION_COOKIE_NAME not in names, f"{turn} finds a session of another"
    assert page.evaluate(LEAVE)
    session = browser_of(people.owner).cookies[settings.SESSION_COOKIE_NAME]
    page.context.add_cookies([{"name": session.key, "value": session.value, "url": server}])
    page.goto("/projects")
    expect(page.get_by_role("navigation", name="Main")).to_be_visible()


def test_two_people_in_one_test_have_sessions_of_their_own(people: People, open_as: Open) -> None:
    owner, viewer = (open_as(person, "/projects") for person in (people.owner, people.viewer))
    for page, person in ((owner, people.owner), (viewer, people.viewer)):
        page.reload()
        expect(page.locator("[data-session]")).to_have_attribute("data-user", person.username)


def test_a_context_whose_page_is_gone_is_replaced(server: str, chromium: Browser) -> None:
    shared = SharedContext(chromium, server)
    broken = shared.lend()
    assert broken is not None
    broken.add_cookies([{"name": "left", "value": "1", "url": server}])
    broken.pages[0].close()
    shared.take_back()
    fresh = shared.lend()
    assert fresh is not None
    assert fresh.cookies() == []
    shared.close()
