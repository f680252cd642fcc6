"""Changing a running search in the dialog of its page, by keyboard alone."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.looking import check_accessibility
from tests.factories import make_experiment, make_job, make_trials
from tests.people import People

Open = Callable[..., Page]


def test_a_search_is_changed_by_keyboard_with_a_preview(people: People, open_as: Open) -> None:
    experiment = make_experiment(project=people.project, by=people.owner)
    job = make_job(experiment=experiment, by=people.owner, state="running")
    make_trials(job, 2)
    page = open_as(people.owner, f"/jobs/{job.pk}")
    page.get_by_role("button", name="Change…").press("Enter")
    dialog = page.get_by_role("dialog", name="Change this search")
    expect(dialog).to_be_visible()
    check_accessibility(page)
    dialog.get_by_label("Trials, at most").fill("9")
    dialog.get_by_label("To", exact=True).fill("32")
    plan = dialog.locator("#revise-plan")
    expect(plan).to_contain_text("Trials, at most: 9, previously 4")
    expect(plan).to_contain_text("units takes integers from 16 to 32")
    dialog.get_by_label("To", exact=True).fill("640")
    expect(plan).to_contain_text("640 is above 64")
    dialog.get_by_label("To", exact=True).fill("32")
    dialog.get_by_label("To", exact=True).press("Enter")
    expect(page.get_by_text("continues with revision 2")).to_be_visible()
    expect(page).to_have_url(re.compile(rf"/jobs/{job.pk}$"))
    page.get_by_role("button", name="Change…").press("Enter")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
