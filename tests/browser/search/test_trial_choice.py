"""Selecting trials of a search by keyboard: columns, comparison, ensemble."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from jobs.models import Job
from tests.browser.looking import Look
from tests.people import People
from tests.seeded import seed_search

Open = Callable[..., Page]


def test_trials_are_chosen_compared_and_pooled_by_keyboard(people: People, open_as: Open, look: Look) -> None:
    search = seed_search(people.project, by=people.owner, trials=30)
    page = open_as(people.owner, f"/jobs/{search.pk}?tab=trials&sort=number")
    expect(page.locator("ty-trials tbody tr").first).to_be_visible()
    expect(page.get_by_role("button", name="Compare")).to_be_disabled()
    for key in ("j", "x", "j", "j", "x"):
        page.keyboard.press(key)
    expect(page.locator("ty-trials .ty-selected")).to_have_count(2)

    menu = page.locator("ty-trials .ty-menu")
    menu.locator("summary").press("Enter")
    menu.get_by_label("dropout", exact=True).press("Space")
    menu.get_by_label("latency", exact=True).press("Space")
    expect(page.get_by_role("button", name="dropout")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(menu.locator("summary")).to_be_focused()

    page.keyboard.press("c")
    comparison = page.get_by_role("region", name="Comparison")
    expect(comparison.get_by_role("heading")).to_have_text("Trials 1, 3 side by side")
    expect(comparison.get_by_role("heading")).to_be_focused()
    expect(comparison.locator("ty-curves canvas").first).to_be_visible()
    values = [search.trials.get(number=number).values["units"] for number in (1, 3)]
    row = comparison.get_by_role("row", name=re.compile("^units"))
    expect(row.locator("td")).to_have_text([str(value) for value in values])
    expect(row.locator(".ty-tag")).to_have_count(1 if values[0] != values[1] else 0)
    look(page, "search-compare")

    comparison.get_by_label("Only differences").press("Space")
    assert all(part in page.url for part in ("compare=1,3", "pick=1,3", "only=differing", "cols="))
    viewer = open_as(people.viewer, page.url)
    expect(viewer.get_by_role("region", name="Comparison").get_by_role("heading")).to_have_text(
        "Trials 1, 3 side by side"
    )
    expect(viewer.get_by_role("button", name="dropout")).to_have_count(0)
    expect(viewer.get_by_role("button", name="Create ensemble")).to_have_count(0)

    page.get_by_role("button", name="Create ensemble").press("Enter")
    dialog = page.get_by_role("dialog", name="Create an ensemble of 2 trials")
    expect(dialog).to_contain_text("2 retrainings, then one ensemble")
    dialog.get_by_role("button", name="Start").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Ensemble of trials 1, 3")
    ensemble = Job.objects.latest("pk")
    assert [member["trial"] for member in ensemble.payload_json["chosen"]] == [1, 3]


def test_rows_picked_with_the_mouse_are_compared_by_key_and_rates_are_told_apart(
    people: People, open_as: Open
) -> None:
    search = seed_search(people.project, by=people.owner, trials=2, executions=1)
    for trial, rate in zip(search.trials.order_by("number"), (0.00012341, 0.00013), strict=True):
        trial.values["learning_rate"] = rate
        trial.save(update_fields=["values"])
        run = trial.executions.get()
        run.metrics["lr"] = rate
        run.save(update_fields=["metrics"])
    page = open_as(people.owner, f"/jobs/{search.pk}?tab=trials&sort=number&cols=h.learning_rate")
    rows = page.locator("ty-trials tbody tr")
    expect(rows.locator("td:nth-child(4)")).to_have_text(["0.0001234", "0.00013"])
    for number in (1, 2):
        page.get_by_label(f"Select trial {number}", exact=True).click()
    expect(page.get_by_role("button", name="Compare")).to_be_enabled()  # drawn a frame after the click
    page.keyboard.press("c")
    comparison = page.get_by_role("region", name="Comparison")
    expect(comparison.get_by_role("heading")).to_be_focused()
    expect(
        comparison.get_by_role("row", name=re.compile("latency")).get_by_title("best of these")
    ).to_have_count(1)
    for name in ("lr", "learning_rate"):
        row = comparison.get_by_role("row", name=re.compile(f"^{name} "))
        expect(row).to_contain_text("0.00013")
        expect(row.get_by_title("best of these")).to_have_count(0)
