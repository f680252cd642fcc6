"""The pages of the reports about models: ensembles, quantizations and evaluations."""

import json
from typing import Any

import pytest

from jobs.messages.reports.evaluation import Calibration, CalibrationBin, ClassEvaluation
from jobs.models import Dataset, DatasetVersion, Job, ModelVersion
from tests.datasets.making import SHOP
from tests.factories import make_experiment, make_job, make_job_artifact, make_model, make_trials
from tests.markup import one_line, text_of
from tests.people import People, browser_of
from tests.reports import ensemble_report, evaluation_report, quantization_report, store_report
from webapp.report_figures import evaluation


@pytest.fixture
def family(people: People) -> Job:
    """A completed root with two trainings, their ensemble, its quantization, and a report of each."""
    experiment = make_experiment(project=people.project, by=people.owner)
    common: dict[str, Any] = {"by": people.owner, "project": people.project, "state": "completed"}
    root = make_job(by=people.owner, experiment=experiment, state="completed")
    trainings = [
        make_job(kind="train", parent=root, title=f"Retrain trial {n}", ordinal=n, **common) for n in (4, 7)
    ]
    members = {"members": [training.pk for training in trainings]}
    pooled = make_job(kind="ensemble", parent=root, title="Ensemble", payload=members, **common)
    small = make_job(kind="quantize", parent=root, title="Quantize to int8", **common)
    names = tuple(f"m{training.pk}" for training in trainings)
    store_report(
        pooled, ensemble_report((2.0, 2.0), names=names, titles=("Retrain trial 4", "Retrain trial 7"))
    )
    store_report(pooled, evaluation_report(), role="evaluation", name="evaluation.json")
    store_report(small, quantization_report())
    return root


def child(root: Job, kind: str) -> Job:
    return next(each for each in root.children.all() if each.kind == kind)


def see(people: People, path: str, **query: Any) -> Any:
    return browser_of(people.viewer).get(path, query)


def test_the_overview_of_a_root_has_the_finding_of_each_step_with_a_link(people: People, family: Job) -> None:
    page = see(people, f"/jobs/{family.pk}")
    text = text_of(page)
    assert "Ensemble : The ensemble of 2 members beats its best member" in text
    assert "Quantize to int8 : int8 is 3.9× smaller, agrees on 99.4 % of 360 test rows" in text
    assert f"?tab=report&amp;of={child(family, 'quantize').pk}" in page.content.decode()


def test_a_report_that_is_written_while_a_page_is_open_gets_its_tab(people: People) -> None:
    job = make_job(by=people.owner, project=people.project, kind="quantize", state="running")

    def head() -> str:
        browser = browser_of(people.viewer)
        return text_of(browser.get(f"/jobs/{job.pk}", {"part": "head"}, headers={"HX-Request": "true"}))

    assert "Attempts" in head()
    assert "Report" not in head()
    store_report(job, quantization_report())
    assert "Report" in head()


def test_a_training_shows_its_best_epoch_and_the_training_of_the_final_model(people: People) -> None:
    found = {"best_epoch": 14, "epochs_to_find": 24, "epochs": 16, "train_rows": 1437, "bytes": 61_000}
    common: dict[str, Any] = {"by": people.owner, "project": people.project, "state": "completed"}
    job = make_job(kind="train", results={**found, "parameters": 12_810}, **common)
    text = text_of(see(people, f"/jobs/{job.pk}"))
    assert (
        "Training: best epoch 14 of 24; the model was trained for 16 epochs on 1 437 rows; "
        "it has 12 810 parameters in 61.0 kB." in text
    )


def test_an_ensemble_shows_members_weights_gains_and_diversity(people: People, family: Job) -> None:
    page = see(people, f"/jobs/{child(family, 'ensemble').pk}", tab="report")
    text = text_of(page)
    assert text.index("beats its best member") < text.index("Members and ensemble")
    first, second = (each for each in family.children.all() if each.kind == "train")
    for training in (first, second):
        assert f'href="/jobs/{training.pk}">{training.title}</a>' in one_line(page)
    for words in ("best member", "Plain mean of all members", "Weight", "Loss added without it"):
        assert words in text
    for words in ("Diversity", "Every pair", "Correlation of errors", "Q statistic"):
        assert words in text


def test_the_figures_of_an_ensemble_name_the_rows_they_were_computed_on(people: People, family: Job) -> None:
    pooled = child(family, "ensemble")
    text = text_of(see(people, f"/jobs/{pooled.pk}", tab="report"))
    assert "on 240 validation rows, each scored with weights fitted on other rows" in text
    assert "all on the same 240 validation rows, on which the weights were fitted" in text
    assert "Ensemble fitted on these rows" in text
    assert "which the sentence above the table uses" in text
    job = make_job(kind="ensemble", by=people.owner, project=people.project, state="completed")
    store_report(job, ensemble_report((2.0, 2.0), method="mean"))
    assert "fitted" not in text_of(see(people, f"/jobs/{job.pk}", tab="report"))


def test_the_report_of_one_member_alone_names_no_figure_that_its_sentence_does_not_have(
    people: People,
) -> None:
    report = ensemble_report((2.0, 2.0))
    first, second = report.weights
    alone = (first.model_copy(update={"weight": 1.0}), second.model_copy(update={"weight": 0.0}))
    job = make_job(kind="ensemble", by=people.owner, project=people.project, state="completed")
    store_report(job, report.model_copy(update={"weights": alone}))
    text = text_of(see(people, f"/jobs/{job.pk}", tab="report"))
    assert "is one member alone" in text and "weights that were fitted on other rows" in text
    assert "sentence above the table" not in text


def test_only_a_member_that_harms_has_an_orange_bar_and_a_sentence_about_it(
    people: People, family: Job
) -> None:
    pooled = child(family, "ensemble")
    orange = "An orange bar marks one that harms it."
    assert orange not in text_of(see(people, f"/jobs/{pooled.pk}", tab="report"))
    report = ensemble_report((2.0, 2.0))
    harming = tuple(each.model_copy(update={"gain": -0.01}) for each in report.leave_one_out)
    job = make_job(kind="ensemble", by=people.owner, project=people.project, state="completed")
    store_report(job, report.model_copy(update={"leave_one_out": harming}))
    page = see(people, f"/jobs/{job.pk}", tab="report")
    assert orange in text_of(page)
    assert "ty-harm" in page.content.decode()


def test_the_method_of_an_interval_has_a_name_and_is_explained(people: People, family: Job) -> None:
    pooled, small = (child(family, kind) for kind in ("ensemble", "quantize"))
    pages = {
        "evaluation": see(people, f"/jobs/{pooled.pk}", tab="evaluation"),
        "ensemble": see(people, f"/jobs/{pooled.pk}", tab="report"),
        "quantization": see(people, f"/jobs/{small.pk}", tab="report"),
    }
    for name, page in pages.items():
        assert "Wilson interval: computed from the share" in text_of(page), name
    evaluation = text_of(pages["evaluation"])
    assert "Bootstrap: rows are drawn at random" in evaluation
    assert " wilson " not in evaluation
    assert " bootstrap " not in evaluation


def test_a_quantization_shows_size_latency_metrics_and_the_error_of_each_layer(
    people: People, family: Job
) -> None:
    text = text_of(see(people, f"/jobs/{family.pk}", tab="report", of=child(family, "quantize").pk))
    assert "400.0 kB" in text
    assert "3.92×" in text
    assert "Generic CPU @ 2.90GHz, 2 of 2 threads" in text
    assert "0.280 ms" in text
    assert "Accuracy 0.9750 0.9550 – 0.9850 0.9722" in text
    assert "output Dense 0.0079" in text
    assert "conv2d Conv2D not quantized: Conv2D has no int8 implementation" in text


def test_a_report_that_cannot_be_read_is_no_error(people: People, family: Job) -> None:
    small = child(family, "quantize")
    store_report(small, b'{"mode": "int8"', name="damaged.json")
    page = see(people, f"/jobs/{small.pk}", tab="report")
    assert page.status_code == 200
    assert "This report cannot be read" in text_of(page)
    assert "Quantize to int8 :" not in text_of(see(people, f"/jobs/{family.pk}"))


def test_a_report_whose_file_is_gone_is_no_error(people: People) -> None:
    job = make_job(kind="train", by=people.owner, project=people.project, state="completed")
    make_job_artifact(job, role="evaluation", name="evaluation.json")
    page = see(people, f"/jobs/{job.pk}", tab="evaluation")
    assert "This report cannot be read" in text_of(page)


@pytest.mark.parametrize(
    ("task", "shown"),
    [
        ("binary", ["Calibration", "ROC curve", "Threshold", "Confusion matrix", "“malignant”"]),
        ("multiclass", ["Calibration", "Confusion matrix"]),
        ("multilabel", ["Calibration", "Area under ROC", "True positives", "False negatives"]),
        ("regression", ["Residuals of y", "Median", "Histogram as a table", "RMSE"]),
    ],
)
def test_an_evaluation_shows_all_that_was_computed(people: People, task: Any, shown: list[str]) -> None:
    job = make_job(kind="train", by=people.owner, project=people.project, state="completed")
    store_report(job, evaluation_report(task), role="evaluation", name="evaluation.json")
    text = text_of(see(people, f"/jobs/{job.pk}", tab="evaluation"))
    assert [words for words in shown if words not in text] == []
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
    job = Job.objects.get(pk=version.source_job_id)
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
    found = {"keras_version": "3.15.1", "sample_rows": 32, "parameters": 12_810}
    common: dict[str, Any] = {"by": people.owner, "project": people.project, "state": "completed"}
    make_job(kind="register", payload={"version": version.pk}, results=found, **common)
    text = text_of(see(people, "/models/plain/versions/1"))
    assert "Saved by Keras 3.15.1" in text
    assert "Checked on 32 sample rows" in text


def test_a_calibration_of_no_rows_has_no_figure() -> None:
    report = evaluation_report()
    assert isinstance(report, ClassEvaluation)
    empty = CalibrationBin(low=0.0, high=1.0, rows=0, confidence=0.5, accuracy=0.25)
    found = report.model_copy(update={"calibration": Calibration(ece=0.25, bins=(empty,))})
    assert evaluation.classes_context(found).calibration is None


def test_an_evaluation_of_an_earlier_release_has_its_roc_curve_without_thresholds(people: People) -> None:
    job = make_job(kind="train", by=people.owner, project=people.project, state="completed")
    body = evaluation_report("binary").model_dump(mode="json")
    del body["roc_thresholds"]
    store_report(job, json.dumps(body).encode(), role="evaluation", name="evaluation.json")
    page = text_of(see(people, f"/jobs/{job.pk}", tab="evaluation"))
    assert "ROC curve" in page
    assert "– 0 % 0 %" in page
