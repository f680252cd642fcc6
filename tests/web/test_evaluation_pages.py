"""Evaluation pages, and version pages with their reports."""

import json
from typing import Any

import pytest

from jobs.messages.reports.evaluation import Calibration, CalibrationBin, ClassEvaluation
from jobs.models import Dataset, DatasetVersion, Job, ModelVersion
from tests.datasets.making import SHOP
from tests.factories import make_experiment, make_job, make_model, make_trials
from tests.markup import one_line, text_of
from tests.people import People
from tests.present import present
from tests.reports import ensemble_report, evaluation_report, quantization_report, store_report
from tests.web.test_model_reports import child, see
from webapp.report_figures import evaluation


@pytest.mark.parametrize(
    ("task", "headings"),
    [
        ("binary", ["Calibration", "ROC curve", "Threshold", "Confusion matrix", "“malignant”"]),
        ("multiclass", ["Calibration", "Confusion matrix"]),
        ("multilabel", ["Calibration", "Area under ROC", "True positives", "False negatives"]),
        ("regression", ["Residuals of y", "Median", "Histogram as a table", "RMSE"]),
    ],
)
def test_an_evaluation_shows_all_that_was_computed(people: People, task: Any, headings: list[str]) -> None:
    job = make_job(kind="train", by=people.owner, project=people.project, state="completed")
    store_report(job, evaluation_report(task), role="evaluation", name="evaluation.json")
    text = text_of(see(people, f"/jobs/{job.pk}", tab="evaluation"))
    assert [words for words in headings if words not in text] == []
    assert ("ROC curve" in text) == (task == "binary")


@pytest.mark.parametrize("task", ["binary", "multilabel", "regression"])
def test_an_evaluation_of_weighted_rows_names_their_column(people: People, task: Any) -> None:
    job = make_job(kind="train", by=people.owner, project=people.project, state="completed")
    report = evaluation_report(task).model_copy(update={"weighted_by": "households"})
    store_report(job, report, role="evaluation", name="evaluation.json")
    text = text_of(see(people, f"/jobs/{job.pk}", tab="evaluation"))
    assert "240 test rows; weighted by households" in text and "Weighted by households." in text
    assert ("each row counts once" in text) == (task != "multilabel")


def test_reports_of_ensembles_and_quantizations_name_the_column_of_weights(people: People) -> None:
    for kind, report in (("ensemble", ensemble_report()), ("quantize", quantization_report())):
        job = make_job(kind=kind, by=people.owner, project=people.project, state="completed")
        store_report(job, report.model_copy(update={"weighted_by": "households"}))
        text = text_of(see(people, f"/jobs/{job.pk}", tab="report"))
        assert ", weighted by households" in text and "Weighted by households." in text


@pytest.fixture
def weighted(people: People) -> DatasetVersion:
    dataset = Dataset.objects.create(project=people.project, slug="shop", name="shop")
    profile = {**SHOP, "weight": "households"}
    return DatasetVersion.objects.create(dataset=dataset, number=1, profile_json=profile, request={})


def test_the_pages_of_a_job_and_of_a_trial_name_the_column_of_weights(
    people: People, weighted: DatasetVersion
) -> None:
    payload = {"dataset_version": weighted.pk}
    experiment = make_experiment(project=people.project, by=people.owner)
    search = make_job(by=people.owner, experiment=experiment, payload=payload)
    (trial,) = make_trials(search, 1)
    assert "are weighted by the column households." in text_of(see(people, f"/jobs/{search.pk}"))
    address = f"/jobs/{search.pk}/trials/{trial.number}"
    assert "metrics weighted by households" in text_of(see(people, address))
    DatasetVersion.objects.update(profile_json=SHOP)
    assert "weighted by" not in text_of(see(people, f"/jobs/{search.pk}")) + text_of(see(people, address))


@pytest.fixture
def version(people: People, family: Job) -> ModelVersion:
    model = make_model("digits", project=people.project, by=people.owner)
    model.versions.update(source_job=child(family, "quantize"), what="quantized")
    return model.versions.get()


def test_a_version_has_the_finding_first_and_the_report_in_a_tab(
    people: People, version: ModelVersion
) -> None:
    address = f"/models/digits/versions/{version.number}"
    overview = see(people, address)
    assert "Report : int8 is 3.9× smaller" in text_of(overview)
    assert f'href="{address}?tab=report"' in one_line(overview)
    text = text_of(see(people, address, tab="report"))
    assert "Error of each layer" in text
    assert "&#x27;" not in see(people, address, tab="report").content.decode()


def test_the_metrics_of_a_version_name_the_column_of_weights(
    people: People, version: ModelVersion, weighted: DatasetVersion
) -> None:
    job = Job.objects.get(pk=present(version.source_job_id))
    job.payload_json = {**job.payload_json, "dataset_version": weighted.pk}
    job.save(update_fields=["payload_json"])
    page = text_of(see(people, f"/models/digits/versions/{version.number}"))
    assert "intervals are under Evaluation; weighted by households" in page


def test_a_version_shows_its_area_under_the_curve_on_both_parts(
    people: People, version: ModelVersion
) -> None:
    """A training reports it as `auc`, an evaluation as `roc_auc`."""
    ModelVersion.objects.update(metrics={"test": {"roc_auc": 0.7412}, "validation": {"auc": 0.7683}})
    page = text_of(see(people, f"/models/digits/versions/{version.number}"))
    assert "Area under the ROC curve 0.7412 0.7683" in page


def test_no_page_of_a_version_prints_a_dict(people: People, version: ModelVersion) -> None:
    for tab in ("overview", "report", "evaluation", "model"):
        page = see(people, f"/models/digits/versions/{version.number}", tab=tab).content.decode()
        assert "{&#x27;" not in page


def test_a_version_without_a_report_has_no_tab_for_it(people: People) -> None:
    make_model("plain", project=people.project, by=people.owner)
    assert "?tab=report" not in see(people, "/models/plain/versions/1").content.decode()
    page = see(people, "/models/plain/versions/1", tab="report")
    assert "have a report that compares them" in text_of(page)


def test_a_version_shows_the_facts_of_its_validation(people: People) -> None:
    version = make_model("plain", project=people.project, by=people.owner).versions.get()
    results = {"keras_version": "3.15.1", "sample_rows": 32, "parameters": 12_810}
    common: dict[str, Any] = {"by": people.owner, "project": people.project, "state": "completed"}
    make_job(kind="register", payload={"version": version.pk}, results=results, **common)
    text = text_of(see(people, "/models/plain/versions/1"))
    assert "Keras version 3.15.1" in text
    assert "Validation sample 32 rows" in text


def test_a_calibration_of_no_rows_has_no_figure() -> None:
    report = evaluation_report()
    assert isinstance(report, ClassEvaluation)
    empty = CalibrationBin(low=0.0, high=1.0, rows=0, confidence=0.5, accuracy=0.25)
    without_rows = report.model_copy(update={"calibration": Calibration(ece=0.25, bins=(empty,))})
    assert evaluation.classes_context(without_rows).calibration is None


def test_an_evaluation_of_an_earlier_release_has_its_roc_curve_without_thresholds(people: People) -> None:
    job = make_job(kind="train", by=people.owner, project=people.project, state="completed")
    body = evaluation_report("binary").model_dump(mode="json")
    del body["roc_thresholds"]
    store_report(job, json.dumps(body).encode(), role="evaluation", name="evaluation.json")
    page = text_of(see(people, f"/jobs/{job.pk}", tab="evaluation"))
    assert "ROC curve" in page
    assert "– 0 % 0 %" in page
