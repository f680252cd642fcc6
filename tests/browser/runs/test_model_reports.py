"""The pages of reports about models, in both themes and widths."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from jobs.models import Job
from tests.browser.looking import Look
from tests.factories import make_job, make_model
from tests.people import People
from tests.reports import ensemble_report, evaluation_report, quantization_report, store_report


def completed(people: People, kind: str, title: str, **fields: Any) -> Job:
    return make_job(
        by=people.owner, project=people.project, kind=kind, state="completed", title=title, **fields
    )


def test_the_report_of_an_ensemble_leads_to_its_members(
    people: People, open_as: Callable[..., Page], look: Look
) -> None:
    trainings = [completed(people, "train", f"Retrain trial {n}") for n in (4, 7, 11, 12)]
    pooled = completed(
        people, "ensemble", "Ensemble", payload={"members": [training.pk for training in trainings]}
    )
    names = tuple(f"m{training.pk}" for training in trainings)
    titles = tuple(training.title for training in trainings)
    store_report(pooled, ensemble_report((2.0, 2.0, 2.6, 9.0), names=names, titles=titles))
    page = open_as(people.viewer, f"/jobs/{pooled.pk}")
    page.get_by_label("Findings").get_by_role("link", name="Ensemble").click()
    expect(page.get_by_role("heading", name="Diversity")).to_be_visible()
    look(page, "report-ensemble")
    page.get_by_label("Members", exact=True).get_by_role("link", name="Retrain trial 7").click()
    expect(page).to_have_url(f"{page.url.split('/jobs/')[0]}/jobs/{trainings[1].pk}")


def test_the_report_of_a_quantization_is_on_the_page_of_its_version(
    people: People, open_as: Callable[..., Page], look: Look
) -> None:
    small = completed(people, "quantize", "Quantize to int8")
    store_report(small, quantization_report())
    store_report(small, evaluation_report("binary"), role="evaluation", name="evaluation.json")
    make_model("digits", project=people.project, by=people.owner).versions.update(source_job=small)
    page = open_as(people.viewer, "/models/digits/versions/1")
    expect(page.get_by_label("Findings")).to_contain_text("int8 is 3.9× smaller")
    look(page, "version-findings")
    page.get_by_role("link", name="Report", exact=True).first.click()
    expect(page.get_by_role("heading", name="Error of each layer")).to_be_visible()
    look(page, "report-quantization")


def test_an_evaluation_draws_calibration_and_roc_with_tables_beside_them(
    people: People, open_as: Callable[..., Page], look: Look
) -> None:
    job = completed(people, "train", "Retrain trial 4")
    store_report(job, evaluation_report("binary"), role="evaluation", name="evaluation.json")
    page = open_as(people.viewer, f"/jobs/{job.pk}?tab=evaluation")
    curve = page.get_by_label("ROC curve", exact=True)
    curve.get_by_text("As a table").click()
    expect(curve.get_by_role("columnheader", name="Threshold")).to_be_visible()
    look(page, "report-evaluation")


def test_an_evaluation_of_a_regression_has_its_residuals_as_a_table(
    people: People, open_as: Callable[..., Page], look: Look
) -> None:
    job = completed(people, "train", "Retrain trial 4")
    store_report(job, evaluation_report("regression"), role="evaluation", name="evaluation.json")
    page = open_as(people.viewer, f"/jobs/{job.pk}?tab=evaluation")
    page.get_by_text("Histogram as a table").click()
    look(page, "report-regression")
