"""An approver changes the gates of a model in the browser."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from jobs.models import GateRevision
from tests import factories
from tests.browser.looking import Look
from tests.people import People


def test_an_approver_adds_rules_row_by_row_and_sees_them_in_the_history(
    people: People, open_as: Callable[..., Page], look: Look
) -> None:
    model = factories.make_model("digits", project=people.project, by=people.member)
    page = open_as(people.approver, "/models/digits")
    page.get_by_role("region", name="Gates").get_by_role("link", name="Change").click()
    page.get_by_label("Tolerance").fill("0.02")
    floors = page.get_by_role("group", name="Floors")
    floors.get_by_label("Metric").first.select_option("f1_macro")
    floors.get_by_label("Limit").first.fill("0.9")
    page.get_by_role("button", name="Add a floor").click()
    expect(floors.get_by_label("Limit")).to_have_count(2)
    expect(floors.get_by_label("Limit").first).to_have_value("0.9")
    look(page, "gates")
    page.get_by_role("button", name="Save as revision 1").click()
    history = page.get_by_role("region", name="History of the gates")
    expect(history).to_contain_text("tolerance: 0.01 → 0.02")
    expect(history).to_contain_text("floor:f1_macro: added, limit 0.9")
    assert GateRevision.objects.get(model=model).created_by == people.approver
