"""Pages for reports about models: ensembles, quantizations and evaluations."""

from typing import Any

from jobs.models import Job
from tests.factories import make_job, make_job_artifact
from tests.markup import one_line, text_of
from tests.people import People, browser_of
from tests.reports import ensemble_report, quantization_report, store_report


def child(root: Job, kind: str) -> Job:
    return next(job for job in root.children.all() if job.kind == kind)


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
    results = {"best_epoch": 14, "epochs_to_find": 24, "epochs": 16, "train_rows": 1437, "bytes": 61_000}
    common: dict[str, Any] = {"by": people.owner, "project": people.project, "state": "completed"}
    job = make_job(kind="train", results={**results, "parameters": 12_810}, **common)
    text = text_of(see(people, f"/jobs/{job.pk}"))
    assert (
        "Training: best epoch 14 of 24; the model was trained for 16 epochs on 1 437 rows; "
        "it has 12 810 parameters in 61.0 kB." in text
    )


def test_an_ensemble_shows_members_weights_gains_and_diversity(people: People, family: Job) -> None:
    page = see(people, f"/jobs/{child(family, 'ensemble').pk}", tab="report")
    text = text_of(page)
    assert text.index("beats its best member") < text.index("Members and ensemble")
    first, second = (job for job in family.children.all() if job.kind == "train")
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
    harming = tuple(member.model_copy(update={"gain": -0.01}) for member in report.leave_one_out)
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
    assert "conv2d Conv2D stays as it is: Conv2D has no int8 implementation" in text


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
