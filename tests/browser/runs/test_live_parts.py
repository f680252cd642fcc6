"""Live parts of pages are updated around the focus, entries and open dialogs."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from jobs.models import Job
from jobs.states import JobState
from tests.factories import make_experiment, make_job
from tests.people import People
from tests.seeded import seed_search

Open = Callable[..., Page]
ASK_NOW = "document.dispatchEvent(new CustomEvent('ty:server', {detail: 'answers'}))"


def test_the_head_of_a_job_is_updated_under_a_dialog_and_around_the_focus(
    people: People, open_as: Open
) -> None:
    search = seed_search(people.project, by=people.owner, trials=4, state="running")
    page = open_as(people.owner, f"/jobs/{search.pk}")
    head, kill = page.locator("#job-head"), page.get_by_role("button", name="Kill", exact=True)
    chart = page.locator("ty-history canvas").first
    chart.evaluate("(canvas) => { canvas.dataset.first = ''; }")
    kill.click()
    expect(page.get_by_role("dialog", name="Kill this job?")).to_be_visible()
    Job.objects.filter(pk=search.pk).update(why_waiting="All slots are taken", state=JobState.QUEUED)
    page.evaluate(ASK_NOW)
    expect(head).to_contain_text("All slots are taken")
    expect(page.get_by_role("dialog", name="Kill this job?")).to_be_visible()
    page.keyboard.press("Escape")
    expect(kill).to_be_focused()
    Job.objects.filter(pk=search.pk).update(why_waiting="", state=JobState.STOPPING)
    page.evaluate(ASK_NOW)
    expect(head).to_contain_text("stopping")
    expect(head).not_to_contain_text("All slots are taken")
    expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
    expect(kill).to_be_focused()
    expect(page.locator("ty-history canvas[data-first]")).to_have_count(1)


def test_a_priority_that_is_typed_stays_with_its_job_while_the_queue_moves(
    people: People, open_as: Open
) -> None:
    experiment = make_experiment("waits", project=people.project, by=people.owner)
    waiting = [make_job(experiment=experiment, by=people.owner) for _ in range(3)]
    page = open_as(people.owner, "/queue")
    field = page.get_by_label(f"Priority of job {waiting[1].pk}", exact=True)
    field.fill("77")
    Job.objects.filter(pk=waiting[0].pk).update(state=JobState.RUNNING)
    Job.objects.filter(pk=waiting[2].pk).update(why_waiting="Waits for a GPU")
    expect(page.locator(".ty-queue tbody tr")).to_have_count(2)
    expect(page.get_by_text("Waits for a GPU")).to_be_visible()
    expect(field).to_be_focused()
    expect(field).to_have_value("77")
    expect(page.get_by_role("button", name=f"Set the priority of job {waiting[1].pk}")).to_be_visible()
    page.keyboard.press("Tab")
    Job.objects.filter(pk=waiting[2].pk).update(why_waiting="Waits for two GPUs")
    expect(page.get_by_text("Waits for two GPUs")).to_be_visible()
    expect(field).to_have_value("77")
