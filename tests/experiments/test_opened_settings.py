"""The form opened from a job: it has the settings of that job, and names newer ones."""

import json
from typing import Any

import pytest
from django.test import Client

from jobs.actions.experiments import experiments
from jobs.models import Experiment, Job
from tests.markup import text_of
from tests.present import present
from tests.world import World


@pytest.fixture
def browser(world: World) -> Client:
    return world.client(world.owner)


@pytest.fixture
def experiment(world: World, spec: dict[str, Any]) -> Experiment:
    return experiments.create(world.project, name="first", spec=with_epochs(spec, 3), by=world.owner)


def with_epochs(spec: dict[str, Any], epochs: int) -> dict[str, Any]:
    return {**spec, "fit": {**spec.get("fit", {}), "epochs": epochs}}


@pytest.fixture
def older(world: World, experiment: Experiment, spec: dict[str, Any]) -> Job:
    """A job with revision 1 of an experiment that has two revisions."""
    job = experiments.submit(experiment, by=world.owner)
    experiments.change(experiment, spec=with_epochs(spec, 5), by=world.owner)
    return job


def opened_form(job: Job, browser: Client) -> Any:
    """Follow *Edit and run* on a job's page."""
    return browser.get(browser.get(f"/jobs/{job.pk}").context["edit_url"])


def epochs_in(page: Any) -> int:
    epochs: int = json.loads(page.context["entries"]["spec"])["fit"]["epochs"]
    return epochs


def test_edit_and_run_opens_the_settings_of_the_job_although_there_are_newer_ones(
    browser: Client, older: Job
) -> None:
    page = opened_form(older, browser)
    assert epochs_in(page) == 3 and page.context["is_unsaved"]
    words = text_of(page)
    assert f"These are the settings of job {older.pk} (revision 1)." in words
    assert "There are newer ones: revision 2 . Submitting makes revision 3." in words
    assert epochs_in(browser.get(page.context["opened"].newest_url)) == 5


def test_submitting_the_settings_of_an_older_job_makes_a_new_revision(browser: Client, older: Job) -> None:
    page = opened_form(older, browser)
    answer = browser.post(page.wsgi_request.get_full_path(), {**page.context["entries"], "do": "submit"})
    assert answer.status_code == 303
    again = present(Job.objects.latest("pk").revision)
    assert (again.number, again.spec.fit.epochs) == (3, 3)
    assert present(older.revision).number == 1


def test_a_job_with_the_newest_settings_names_no_other_ones(
    browser: Client, experiment: Experiment, world: World
) -> None:
    page = opened_form(experiments.submit(experiment, by=world.owner), browser)
    assert not page.context["is_unsaved"]
    assert "(revision 1)." in text_of(page) and "newer" not in text_of(page)


def test_a_refused_form_keeps_naming_the_job(browser: Client, older: Job) -> None:
    page = opened_form(older, browser)
    refused = browser.post(
        page.wsgi_request.get_full_path(), {**page.context["entries"], "spec": "{", "do": "submit"}
    )
    assert refused.status_code == 422
    assert f"These are the settings of job {older.pk}" in text_of(refused)


@pytest.mark.parametrize("query", ["job=77777", "job=x", "job=", "revision=9", "revision=x"])
def test_unknown_settings_are_not_replaced_by_others(browser: Client, older: Job, query: str) -> None:
    address = f"/p/yard/experiments/{older.experiment_id}/edit"
    assert browser.get(f"{address}?{query}").status_code == 404


def test_a_job_of_another_experiment_is_not_opened(
    browser: Client, older: Job, world: World, spec: dict[str, Any]
) -> None:
    other = experiments.create(world.project, name="other", spec=spec, by=world.owner)
    assert browser.get(f"/p/yard/experiments/{other.pk}/edit?job={older.pk}").status_code == 404
