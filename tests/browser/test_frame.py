"""The frame of every page: navigation, search, theme, keyboard."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.people import People

Open = Callable[..., Page]


def test_the_theme_is_kept_and_set_before_the_first_paint(people: People, open_as: Open) -> None:
    page = open_as(people.owner)
    toggle = page.locator("[data-theme-toggle]")
    toggle.click()
    toggle.click()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    page.reload()
    assert 'data-bs-theme="dark"' in page.request.get("/").text()


def test_slash_opens_the_search_and_question_mark_the_list_of_keys(people: People, open_as: Open) -> None:
    page = open_as(people.owner)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.get_by_role("combobox")).to_be_focused()


def test_navigation_folds_on_wide_screens_and_slides_in_on_narrow_ones(people: People, open_as: Open) -> None:
    page = open_as(people.owner)
    page.get_by_role("button", name="Collapse").click()
    expect(page.locator("html")).to_have_attribute("data-nav", "collapsed")
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("button", name="Open navigation").click()
    expect(page.get_by_role("link", name="Queue")).to_be_visible()
