"""The charts of a search: each can be reached, read, filtered and walked through."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.looking import Look
from tests.people import People
from tests.seeded import seed_search

Open = Callable[..., Page]
CHARTS = (
    "history",
    "parallel",
    "importance",
    "slice",
    "contour",
    "heat",
    "rank",
    "pareto",
    "timeline",
    "curves",
)
DRAWN = ".ty-echart canvas, ty-history canvas, ty-curves canvas"


def test_every_chart_is_drawn_and_looked_at(people: People, open_as: Open, look: Look) -> None:
    search = seed_search(people.project, by=people.owner, trials=60)
    page = open_as(people.owner, f"/jobs/{search.pk}?tab=charts")
    charts = page.get_by_role("navigation", name="Charts").get_by_role("link")
    expect(charts).to_have_count(len(CHARTS))
    for name, link in zip(CHARTS, charts.all(), strict=True):
        link.click()
        expect(page.locator(DRAWN).first).to_be_visible()
        expect(page.locator("ty-charts [data-note]")).not_to_be_empty()
        look(page, f"search-{name}")
