"""The drawing of a 200-layer model: size by buttons and keys, and boxes that expand in place."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.architectures import deep, summary
from tests.browser.looking import Look
from tests.factories import make_job, make_model
from tests.people import People
from tests.reports import store_report


def test_a_drawing_changes_its_size_and_expands_a_block_in_its_place(
    people: People, open_as: Callable[..., Page], look: Look
) -> None:
    job = make_job(by=people.owner, project=people.project, kind="train", state="completed")
    store_report(job, summary(deep()), role="summary", name="summary.json")
    make_model("digits", project=people.project, by=people.owner).versions.update(source_job=job)
    page = open_as(people.viewer, "/models/digits/versions/1?tab=model")
    view = page.get_by_role("region", name="Drawing of the architecture")
    picture = page.locator("svg.ty-architecture")
    natural = float(picture.get_attribute("width") or 0)
    page.get_by_role("button", name="Larger").click()
    expect(page.get_by_text("125 %")).to_be_visible()
    view.press("-")
    view.press("-")
    expect(page.get_by_text("80 %")).to_be_visible()
    view.press("0")
    assert float(picture.get_attribute("width") or 0) == natural
    model = page.get_by_role("link", name="Expand encoder")
    model.scroll_into_view_if_needed()
    view.press("-")
    before = view.evaluate("view => view.scrollTop")
    model.click()
    collapse = page.get_by_role("link", name="Collapse encoder")
    expect(collapse).to_be_focused()
    expect(page.get_by_text("80 %")).to_be_visible()
    assert abs(view.evaluate("view => view.scrollTop") - before) < 5
    assert "open=" in page.url
    look(page, "architecture-expanded")
    collapse.press("Enter")
    expect(model).to_be_focused()
