"""A refusal stays where the person is until it is dismissed or the next attempt; a success vanishes."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from jobs.models import Checkpoint, Execution, Job
from tests.browser.looking import Look
from tests.factories import make_experiment, make_job, make_trials
from tests.people import People

Open = Callable[..., Page]
A_MINUTE = 60_000


def searching(people: People) -> Job:
    """Make a running search with a trial that can be continued."""
    experiment = make_experiment(project=people.project, by=people.owner)
    search = make_job(experiment=experiment, by=people.owner, state="running")
    (trial,) = make_trials(search, 1)
    Execution.objects.filter(trial=trial).update(epochs=5)
    for execution in (1, 2):
        place = {"job": search, "trial": trial, "execution": execution, "attempt": 1, "step": 5, "epoch": 5}
        Checkpoint.objects.create(**place, folder=f"{execution}", manifest="b", bytes=1)
    return search


def test_a_refused_field_has_its_reason_beside_it(people: People, open_as: Open, look: Look) -> None:
    search = searching(people)
    page = open_as(people.owner, f"/jobs/{search.pk}/trials/1")
    page.clock.install()
    field = page.get_by_label("Continue training to epoch")
    field.evaluate("field => { field.form.noValidate = true; }")
    field.fill("1")
    page.get_by_role("button", name="Continue training").click()
    refusal = page.get_by_role("alert").filter(has_text="enter more")
    expect(refusal).to_be_focused()
    page.clock.fast_forward(A_MINUTE)
    expect(refusal).to_be_visible()
    expect(field).to_have_attribute("aria-invalid", "true")
    described = field.get_attribute("aria-describedby")
    assert described is not None and refusal.get_attribute("id") == described
    assert field.evaluate("(field, id) => field.form.nextElementSibling.id === id", described)
    look(page, "refusal-at-field")
    refusal.get_by_role("button", name="Dismiss").click()
    expect(refusal).to_have_count(0)
    assert field.get_attribute("aria-invalid") is None


def test_a_refused_button_has_its_reason_on_the_page_and_a_success_vanishes(
    people: People, open_as: Open
) -> None:
    search = searching(people)
    page = open_as(people.owner, f"/jobs/{search.pk}/trials/1")
    page.clock.install()
    again = page.get_by_role("link", name="Queue these values again")
    start = page.get_by_role("dialog").get_by_role("button", name="Start")
    again.click()
    start.click()
    expect(page.locator("#toasts > *")).to_contain_text("is queued")
    page.clock.fast_forward(A_MINUTE)
    expect(page.locator("#toasts > *")).to_have_count(0)
    again.click()
    Job.objects.filter(pk=search.pk).update(state="completed")
    start.click()
    refusal = page.locator("#refusals").get_by_role("alert")
    expect(refusal).to_contain_text("accepts no more trials")
    page.clock.fast_forward(A_MINUTE)
    expect(refusal).to_be_in_viewport()
    expect(page.locator("#toasts > *")).to_have_count(0)
