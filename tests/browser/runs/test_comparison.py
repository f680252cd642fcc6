"""Comparing jobs and versions, from the lists to the curves."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from jobs.models import DatasetVersion, Job, ModelVersion
from tests.browser.looking import Look
from tests.browser.search.test_training_time import measure, places
from tests.factories import make_dataset, make_experiment, make_job, make_model
from tests.people import People
from tests.reports import evaluation_report, store_report
from tests.web.test_compare_page import trained

Open = Callable[..., Page]
LINES = "async ({chart}) => chart.series.length - 1"


@pytest.fixture
def digits(people: People) -> DatasetVersion:
    return make_dataset("digits", project=people.project, by=people.owner).versions.get()


@pytest.fixture
def jobs(people: People, digits: DatasetVersion) -> tuple[Job, Job, Job]:
    """Two trainings on the same rows, which differ in the learning rate, and one on other rows."""
    report = evaluation_report()
    slow = trained(people, digits, float(report.metrics["accuracy"].value or 0))
    store_report(slow, report, role="evaluation", name="evaluation.json")
    fast = trained(people, digits, 0.5, fit={"learning_rate": 0.01})
    other = trained(people, digits, 0.99, data={"split": {"test": 0.3}})
    for job in (slow, fast, other):
        job.results_json["test_rows"] = report.rows
        job.save(update_fields=["results_json"])
    for job, seconds in ((slow, 20.0), (fast, 10.0)):
        for name in ("loss", "val_loss"):
            measure(job, name, {epoch: seconds * epoch for epoch in (1, 2, 3)})
    return slow, fast, other


def test_jobs_that_are_selected_in_the_list_are_compared_at_an_address_that_others_can_open(
    people: People, jobs: tuple[Job, Job, Job], open_as: Open, look: Look
) -> None:
    slow, fast, other = jobs
    page = open_as(people.owner, "/jobs")
    for job in jobs:
        page.get_by_label(f"Select job {job.pk}, {job.label}").check()
    expect(page.get_by_text("3 side by side")).to_have_count(0)
    page.get_by_role("button", name="Compare").click()
    chosen = "&".join(f"job={job.pk}" for job in (other, fast, slow))
    expect(page).to_have_url(re.compile(rf"/compare\?{chosen}$"))
    expect(page.get_by_text("3 side by side")).to_be_visible()
    expect(page.get_by_text("not measured on the same rows: 2 different sets")).to_be_visible()
    rates = page.get_by_role("row", name=re.compile("^Learning rate"))
    expect(rates.get_by_role("cell")).to_have_text(["0.001", "0.01", "0.001"])
    expect(page.locator(".cm-interval").first).to_be_visible()
    expect(page.get_by_label("best of these")).to_have_count(0)
    look(page, "compare")

    page.get_by_role("link", name=re.compile(rf"^Remove .*job {other.pk} from")).click()
    expect(page.get_by_text("2 side by side")).to_be_visible()
    expect(page.get_by_text("All 2 with test metrics were measured on the same 240")).to_be_visible()
    expect(page.get_by_label("best of these").first).to_be_visible()

    curves = page.locator("ty-compared-curves")
    assert places(curves, 3) == [1, 2, 3]
    assert curves.evaluate(LINES) == 2
    page.get_by_role("combobox", name="Metric").select_option("val_loss")
    page.get_by_label("Across").select_option(label="training time")
    assert places(curves, 4) == [0, 10, 20, 40]

    shared = open_as(people.viewer, page.url)
    expect(shared.get_by_text("2 side by side")).to_be_visible()
    expect(shared.get_by_role("combobox", name="Metric")).to_have_value("val_loss")
    assert places(shared.locator("ty-compared-curves"), 4) == [0, 10, 20, 40]


def test_versions_are_compared_from_the_list_of_their_model(
    people: People, jobs: tuple[Job, Job, Job], open_as: Open
) -> None:
    model = make_model("digits", project=people.project, by=people.owner, versions=3)
    ModelVersion.objects.filter(model=model).update(source_job=jobs[0])
    page = open_as(people.viewer, "/models/digits")
    for number in (3, 1):
        page.get_by_label(f"Select version {number}").check()
    page.get_by_role("button", name="Compare").press("Enter")
    expect(page.get_by_text("2 side by side")).to_be_visible()
    assert "digits%3A3&version=digits%3A1" in page.url
    expect(page.locator(".cm-plot circle")).to_have_count(2)


def test_more_than_fifty_are_answered_with_a_sentence_that_counts_those_left_out(
    people: People, open_as: Open
) -> None:
    experiment = make_experiment(project=people.project, by=people.owner)
    many = [make_job(experiment=experiment, by=people.owner) for _ in range(52)]
    page = open_as(people.owner, "/compare?" + "&".join(f"job={job.pk}" for job in many))
    expect(page.get_by_text("A comparison holds at most 50: the last 2 of 52 are left out.")).to_be_visible()
    expect(page.get_by_text("50 side by side")).to_be_visible()
