""" "Find a good model" in the browser, and the form of an experiment that searches several templates."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from jobs.models import Job
from tests.browser.conftest import Watch
from tests.browser.experiments.test_experiment_form import (
    add_hyperparameter,
    at,
    settled,
    spec,
    step,
)
from tests.browser.looking import Look
from tests.datasets.making import bundle
from tests.people import People

Open = Callable[..., Page]


def test_a_person_finds_the_button_at_the_data_and_starts_the_search(
    people: People, open_as: Open, look: Look, watch: Watch
) -> None:
    bundle()
    page = open_as(people.owner, "/datasets/digits?project=yard")
    page.get_by_role("link", name="Find a good model").click()
    expect(page.get_by_label("Data set")).to_have_value("digits:1")
    page.get_by_label("Limit").fill("0")
    page.get_by_role("button", name="Find a good model").click()
    expect(page.get_by_text("Ensure this value is greater than or equal to 0.1.", exact=True)).to_be_visible()
    watch.ignore("422")
    look(page, "find-model")
    page.get_by_label("Limit").fill("2")
    page.get_by_role("button", name="Find a good model").click()
    page.wait_for_url("**/jobs/*")
    job = Job.objects.get(kind="search")
    assert job.revision is not None
    search = job.revision.spec.search
    assert search is not None
    assert (search.max_minutes, search.space[0].name) == (2, "template")


def test_the_details_can_be_changed_before_the_start(people: People, open_as: Open) -> None:
    bundle()
    page = open_as(people.owner, "/p/yard/find-model?dataset=digits&version=1")
    page.get_by_role("button", name="Change details first").click()
    page.wait_for_url("**/edit")
    settled(page, "ok")
    step(page, "Search space")
    expect(at(page, "/search/max_minutes")).to_have_value("10")
    expect(at(page, "/search/space/1").get_by_role("button", name="template =")).to_be_visible()
    assert not Job.objects.filter(kind="search").exists()


def test_an_argument_of_a_template_is_added_with_its_condition(people: People, open_as: Open) -> None:
    bundle()
    page = open_as(people.owner, "/p/yard/experiments/new")
    settled(page, "ok")
    step(page, "Search space")
    for label in ("template", "linear/l2"):
        add_hyperparameter(page, label)
    added = spec(page)["search"]["space"][-2:]
    assert [row["name"] for row in added] == ["template", "linear/l2"]
    assert added[1]["when"] == {"name": "template", "in": ["linear"]}
