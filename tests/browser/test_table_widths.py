"""No table hides a column on a laptop, however long its names, and on a phone none is cut without a sign."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize

from tests.people import browser_of
from tests.web.long_contents import LongContents, make_long_contents
from tests.web.test_stranger import PLAIN, body_of

Open = Callable[..., Page]
LAPTOP: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 420, "height": 800}
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


def pages_with_tables(contents: LongContents) -> list[str]:
    browser = browser_of(contents.people.administrator)
    paths = (
        *(f"/{route}" for route in PLAIN if not route.startswith(("api/", "docs", "styleguide"))),
        *contents.paths,
    )
    pages = {path: browser.get(path) for path in paths}
    return [
        path
        for path, page in pages.items()
        if page.headers.get("Content-Type", "").startswith("text/html") and "<table" in body_of(page)
    ]


def test_no_table_is_wider_than_its_box_on_a_laptop_nor_cut_on_a_phone(
    contents: LongContents, open_as: Open
) -> None:
    paths = pages_with_tables(contents)
    assert len(paths) > 30
    page, wrong = open_as(contents.people.administrator), []
    for path in paths:
        page.set_viewport_size(LAPTOP)
        page.goto(path)
        wrong += [f"{path}: {table}" for table in page.evaluate(WIDER_THAN_THEIR_BOXES, WIDE_BY_NATURE)]
        page.set_viewport_size(PHONE)
        wrong += [f"{path} on a phone: {table}" for table in page.evaluate(CUT, WIDE_BY_NATURE)]
    assert not wrong, "\n".join(wrong)
