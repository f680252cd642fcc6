"""Pages with long contents show words, and hide no column of a table."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize

from tests.people import browser_of
from tests.web.long_contents import LongContents, make_long_contents
from tests.web.test_shown_words import names_of_code
from tests.web.test_stranger import PLAIN, body_of

Open = Callable[..., Page]
LAPTOP: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 420, "height": 800}
FOR_READERS = ("/docs", "/styleguide")
"""Documents, whose tables are text."""
WIDE_BY_NATURE = ".ds-sample, .ds-sample table, .cm-table, .ty-matrix, .cd-diff"
"""One column for each column of the data, for each compared thing, for each class; differences of code."""

WIDER_THAN_THEIR_BOXES = """wide => [...document.querySelectorAll("table")]
    .filter(table => table.checkVisibility() && !table.matches(wide))
    .map(table => [table, table.closest(".table-responsive, .ty-scroll") ?? table.parentElement])
    .map(([table, box]) => [table, Math.round(table.scrollWidth - box.clientWidth)])
    .filter(([, hidden]) => hidden > 0)
    .map(([table, hidden]) => {
        const heads = [...table.querySelectorAll("th[scope=col]")].map(head => head.textContent.trim());
        return `${hidden} px of: ${heads.join(" | ")}`;
    })"""
CUT = """wide => [...document.querySelectorAll("table")]
    .filter(table => table.checkVisibility() && !table.closest(".table-responsive, .ty-scroll"))
    .filter(table => !table.matches(wide) && table.getBoundingClientRect().right > innerWidth)
    .map(table => table.textContent.trim().slice(0, 80))"""


@pytest.fixture
def contents(transactional_db: None) -> LongContents:
    return make_long_contents()


def pages_of(contents: LongContents) -> dict[str, str]:
    """Return all pages, by their addresses."""
    browser = browser_of(contents.people.administrator)
    paths = (*(f"/{route}" for route in PLAIN if not route.startswith("api/")), *contents.paths)
    responses = {path: browser.get(path) for path in paths}
    return {
        path: body_of(response)
        for path, response in responses.items()
        if response.headers.get("Content-Type", "").startswith("text/html")
    }


def test_pages_show_no_name_of_code_and_hide_no_column_on_a_laptop_nor_cut_a_table_on_a_phone(
    contents: LongContents, open_as: Open
) -> None:
    pages = pages_of(contents)
    shown = [f"{path}: {name}" for path, page in pages.items() for name in sorted(names_of_code(page))]
    assert not shown, "\n".join(shown)
    paths = [path for path, page in pages.items() if "<table" in page and not path.startswith(FOR_READERS)]
    assert len(paths) > 30
    page, wrong = open_as(contents.people.administrator), []
    for path in paths:
        page.set_viewport_size(LAPTOP)
        page.goto(path)
        wrong += [f"{path}: {table}" for table in page.evaluate(WIDER_THAN_THEIR_BOXES, WIDE_BY_NATURE)]
        page.set_viewport_size(PHONE)
        wrong += [f"{path} on a phone: {table}" for table in page.evaluate(CUT, WIDE_BY_NATURE)]
    assert not wrong, "\n".join(wrong)
