"""Deleting, restoring, the storage page and taking an endpoint down, in use."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from jobs.actions.storage import deletions
from jobs.models import Checkpoint, Endpoint, Job
from tests import factories
from tests.browser.looking import Look
from tests.people import People

Open = Callable[..., Page]


@pytest.fixture
def job(people: People) -> Job:
    """A finished search with trials and files, in a project with data and a model."""
    experiment = factories.make_experiment("digits with an mlp", project=people.project, by=people.member)
    search = factories.make_job(by=people.member, experiment=experiment, state="completed")
    factories.make_trials(search, 6)
    factories.make_job_artifact(search)
    folder = f"job-{search.pk}/1"
    Checkpoint.objects.create(
        job=search, attempt=1, step=1, epoch=1, folder=folder, manifest="m", bytes=3_456_789
    )
    factories.make_dataset("flowers", project=people.project, by=people.member)
    factories.make_model("digits", project=people.project, by=people.member, versions=2)
    return search


def test_a_job_is_deleted_after_its_loss_was_shown_and_restored_again(
    people: People, job: Job, open_as: Open, look: Look
) -> None:
    gone = factories.make_experiment("an old idea", project=people.project, by=people.member)
    deletions.delete(gone, by=people.member)
    page = open_as(people.owner, f"/jobs/{job.pk}")
    page.get_by_role("link", name="Delete…").click()
    expect(page.get_by_role("heading", name=f"Delete job {job.pk}?")).to_be_visible()
    expect(page.get_by_role("row", name="checkpoints 1 3.5 MB")).to_be_visible()
    look(page, "deletion")
    page.get_by_role("button", name=f"Delete job {job.pk}").click()
    expect(page).to_have_url(re.compile(r"/jobs$"))
    assert not Job.objects.filter(pk=job.pk).exists()
    page.goto("/storage")
    expect(page.get_by_role("row", name="The yard")).to_contain_text("3.5 MB")
    look(page, "storage")
    page.get_by_role("row", name=f"job {job.pk}").get_by_role("button", name="Restore").click()
    expect(page.get_by_text(f"Restored job {job.pk}")).to_be_visible()
    assert Job.objects.filter(pk=job.pk).exists()


def test_a_deletion_that_is_refused_links_to_the_reasons(
    people: People, job: Job, open_as: Open, look: Look
) -> None:
    version = people.project.models.get().versions.get(number=1)
    version.source_job = job
    version.save()
    page = open_as(people.member, f"/delete/job/{job.pk}")
    expect(page.get_by_role("heading", name="This cannot be deleted yet")).to_be_visible()
    expect(page.get_by_role("button", name="Delete job")).to_have_count(0)
    look(page, "deletion-refused")
    page.get_by_role("link", name="digits v1").click()
    expect(page).to_have_url(re.compile(r"/models/digits/versions/1$"))


def test_an_approver_takes_an_endpoint_down_and_brings_it_up(
    people: People, job: Job, open_as: Open, look: Look
) -> None:
    first, second = people.project.models.get().versions.order_by("number")
    Endpoint.objects.filter(model__name="digits").update(production=second, previous=first, generation=2)
    page = open_as(people.approver, "/endpoints/digits")
    card = page.get_by_role("region", name="Take down")
    card.get_by_label("Reason").fill("it leaks personal data")
    card.get_by_role("button", name="Take down").click()
    dialog = page.get_by_role("dialog", name="Take digits down?")
    expect(dialog).to_contain_text("answered with 404")
    dialog.get_by_role("button", name="Take down").click()
    expect(page.get_by_role("heading", name="This endpoint is down")).to_be_visible()
    expect(page.get_by_text("taken down")).to_be_visible()
    look(page, "endpoint-down")
    page.get_by_role("button", name="Bring up").click()
    expect(page.get_by_role("button", name="Take down")).to_be_visible()
