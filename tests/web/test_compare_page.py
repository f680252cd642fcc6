"""The page that compares jobs, experiments and versions, and its REST operations."""

import copy
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.models import Attempt, DatasetVersion, Job, MetricChunk, MetricSeries, ModelVersion, Project
from jobs.queries.runs.codec import pack_columns
from jobs.queries.runs.job_comparison.comparison import comparison_out
from jobs.queries.runs.job_comparison.requested import MAX_SUBJECTS, read_requested
from tests.factories import (
    SEARCH,
    SPEC,
    make_attempt,
    make_dataset,
    make_experiment,
    make_job,
    make_model,
    make_trials,
    make_worker,
)
from tests.markup import text_of
from tests.people import People, browser_of
from tests.reports import evaluation_report, store_report


@pytest.fixture
def digits(people: People) -> DatasetVersion:
    return make_dataset("digits", project=people.project, by=people.owner).versions.get()


@pytest.fixture
def browser(people: People) -> Client:
    return browser_of(people.owner)


def trained(people: People, version: DatasetVersion, accuracy: float, **changes: Any) -> Job:
    """Make a completed training whose settings differ in `changes`, each a section of the spec."""
    spec = copy.deepcopy(SPEC)
    for section, fields in changes.items():
        spec[section] = {**spec[section], **fields}
    experiment = make_experiment(project=people.project, by=people.owner, spec=spec)
    return make_job(
        kind="train",
        experiment=experiment,
        by=people.owner,
        state="completed",
        payload={"dataset_version": version.pk},
        results={
            "metrics": {"test": {"accuracy": accuracy}, "validation": {"accuracy": accuracy, "loss": 0.3}},
            "score": accuracy,
            "test_rows": 360,
            "parameters": 640,
        },
    )


def store_curve(job: Job, name: str, values: list[float]) -> None:
    series = MetricSeries.objects.create(job=job, attempt=1, name=name, x="epoch")
    xs = np.arange(1.0, len(values) + 1)
    MetricChunk.objects.create(
        series=series,
        first_x=xs[0],
        last_x=xs[-1],
        count=len(values),
        data=pack_columns(np.array([xs, values, xs])),
    )


def compared(people: People, *jobs: Job, **lists: list[str]) -> Any:
    return comparison_out(people.owner, read_requested([str(job.pk) for job in jobs], **lists))


def test_only_settings_that_differ_are_rows_and_the_others_are_collapsed(
    people: People, digits: DatasetVersion, browser: Client
) -> None:
    one, two = trained(people, digits, 0.9), trained(people, digits, 0.95, fit={"learning_rate": 0.01})
    answer = compared(people, one, two)
    assert [(row["pointer"], row["values"]) for row in answer["differing"]] == [
        ("/fit/learning_rate", [0.001, 0.01])
    ]
    assert "/fit/epochs" in {row["pointer"] for row in answer["equal"]}
    page = browser.get(f"/compare?job={one.pk}&job={two.pk}").content.decode()
    before, _, after = page.partition('<details class="cm-equal">')
    assert ("Learning rate" in before, "Learning rate" in after) == (True, False)
    assert ("Batch size" in before, "Batch size" in after) == (False, True)


def test_a_default_that_one_experiment_writes_out_does_not_differ(
    people: People, digits: DatasetVersion
) -> None:
    one, two = trained(people, digits, 0.9), trained(people, digits, 0.9, fit={"shuffle": True})
    assert compared(people, one, two)["differing"] == []


def test_the_best_metric_is_marked_only_among_the_same_rows(people: People, digits: DatasetVersion) -> None:
    one, two = trained(people, digits, 0.9), trained(people, digits, 0.95)
    other = trained(people, digits, 0.99, data={"split": {"test": 0.3}})
    same, mixed = compared(people, one, two), compared(people, one, two, other)
    assert best_of(same) == {
        ("score", "val_loss"): [0],
        ("test", "accuracy"): [1],
        ("validation", "accuracy"): [1],
    }
    assert same["same_rows"] and same["rows"].startswith(
        "All 2 with test metrics were measured on the same 360"
    )
    assert best_of(mixed) == {} and not mixed["same_rows"]
    assert "not measured on the same rows: 2 different sets of test rows" in mixed["rows"]
    assert [subject["rows_group"] for subject in mixed["subjects"]] == ["A", "A", "B"]


def test_other_numbers_of_the_same_test_rows_are_not_compared(people: People, digits: DatasetVersion) -> None:
    one, fewer = trained(people, digits, 0.9), trained(people, digits, 0.95)
    fewer.results_json = {**fewer.results_json, "test_rows": 300}
    fewer.save()
    answer = compared(people, one, fewer)
    assert [subject["rows_group"] for subject in answer["subjects"]] == ["A", "B"]
    assert best_of(answer) == {} and "different numbers of rows" in answer["rows"]


def test_the_time_of_a_job_is_that_of_its_attempts(people: People, digits: DatasetVersion) -> None:
    job, worker = trained(people, digits, 0.9), make_worker("box")
    begin = timezone.now() - timedelta(hours=2)
    Job.objects.filter(pk=job.pk).update(started=begin, finished=begin + timedelta(hours=1))
    for minutes in (0, 50):
        attempt, claimed = make_attempt(job, worker), begin + timedelta(minutes=minutes)
        ended = claimed + timedelta(minutes=10)
        Attempt.objects.filter(pk=attempt.pk).update(state="ended", claimed=claimed, ended=ended)
    assert compared(people, job)["subjects"][0]["seconds"] == 20 * 60


def best_of(answer: Any) -> dict[tuple[str, str], list[int]]:
    return {(row["part"], row["name"]): row["best"] for row in answer["metrics"] if row["best"]}


def test_a_new_version_of_the_data_has_other_rows(people: People, digits: DatasetVersion) -> None:
    newer = DatasetVersion.objects.get(pk=digits.pk)
    newer.pk, newer.number, newer.digest = None, 2, "f" * 64
    newer.save()
    answer = compared(people, trained(people, digits, 0.9), trained(people, newer, 0.95))
    assert [subject["rows_group"] for subject in answer["subjects"]] == ["A", "B"]


def test_scores_of_objectives_keep_their_directions(people: People, digits: DatasetVersion) -> None:
    def searched(direction: str, scores: tuple[float, float], metric: str) -> Job:
        spec = copy.deepcopy(SEARCH)
        spec["search"]["objective"] = {"metric": metric, "direction": direction}
        experiment = make_experiment(project=people.project, by=people.owner, spec=spec)
        job = make_job(
            experiment=experiment, by=people.owner, state="running", payload={"dataset_version": digits.pk}
        )
        for trial, score in zip(make_trials(job, 2), scores, strict=True):
            trial.score = score
            trial.save(update_fields=["score"])
        return job

    up = searched("max", (0.8, 0.9), "val_accuracy")
    down = [searched("min", (0.4, 0.7), "val_loss"), searched("min", (0.6, 0.5), "val_loss")]
    answer = compared(people, up, *down)
    rows = {row["name"]: row for row in answer["metrics"] if row["part"] == "score"}
    shown = {name: [value and value["value"] for value in row["values"]] for name, row in rows.items()}
    assert shown == {"val_accuracy": [0.9, None, None], "val_loss": [None, 0.4, 0.5]}
    assert (rows["val_accuracy"]["best"], rows["val_loss"]["best"]) == ([], [1])
    odd = searched("max", (0.1, 0.2), "val_loss")
    row = compared(people, down[0], odd)["metrics"][0]
    assert (row["direction"], row["best"]) == (None, []), "opposite directions have no best value"


def test_metrics_have_the_intervals_of_their_evaluation(people: People, digits: DatasetVersion) -> None:
    report = evaluation_report()
    value = report.metrics["accuracy"]
    jobs = [trained(people, digits, float(value.value or 0)), trained(people, digits, 0.5)]
    store_report(jobs[0], report, role="evaluation", name="evaluation.json")
    row = next(row for row in compared(people, *jobs)["metrics"] if row["part"] == "test")
    assert row["values"][0] == {"value": value.value, "low": value.low, "high": value.high}
    assert row["values"][1] == {"value": 0.5, "low": None, "high": None}


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ("running", "The job is running; its model has not been measured on test rows yet."),
        ("failed", "The job failed before its model was measured on test rows."),
    ],
)
def test_a_job_without_test_metrics_says_why(
    people: People, digits: DatasetVersion, browser: Client, state: str, sentence: str
) -> None:
    other = trained(people, digits, 0.9)
    experiment = make_experiment(project=people.project, by=people.owner)
    job = make_job(experiment=experiment, by=people.owner, state=state)
    answer = compared(people, other, job)
    assert answer["subjects"][1]["note"] == sentence
    assert sentence in browser.get(f"/compare?job={other.pk}&job={job.pk}").content.decode()


def test_experiments_stand_for_their_newest_job_and_versions_for_their_training(
    people: People, digits: DatasetVersion
) -> None:
    job = trained(people, digits, 0.9)
    never_run = make_experiment(project=people.project, by=people.owner)
    model = make_model("digits", project=people.project, by=people.owner)
    ModelVersion.objects.filter(model=model).update(source_job=job, metrics={"test": {"accuracy": 0.9}})
    lists = {"experiments": [str(job.experiment_id), str(never_run.pk)], "versions": ["digits:1"]}
    experiment, unused, version = compared(people, **lists)["subjects"]
    assert (experiment["job"], unused["job"], version["job"]) == (job.pk, None, job.pk)
    assert unused["note"] == "It was never run."
    assert {experiment["rows_group"], version["rows_group"]} == {"A"}
    assert version["curve"] == {"job": job.pk, "trial": None}


def test_unknown_and_invisible_things_are_named_and_the_others_compared(
    people: People, digits: DatasetVersion, browser: Client
) -> None:
    job = trained(people, digits, 0.9)
    hidden = make_job(by=people.stranger, project=Project.objects.get(slug="elsewhere"), title="Secret")
    page = browser.get(
        f"/compare?job={job.pk}&job={hidden.pk}&job=x&experiment=77&version=no-model:1&version=y"
    )
    text = text_of(page)
    assert page.status_code == 200 and "Secret" not in text
    names = (f"job {hidden.pk}", "job x", "experiment 77", "version no-model:1", "version y")
    assert not [name for name in names if f"no {name}" not in text]


def test_more_than_fifty_are_cut_on_the_page_and_refused_by_rest(people: People, browser: Client) -> None:
    experiment = make_experiment(project=people.project, by=people.owner)
    jobs = [make_job(experiment=experiment, by=people.owner) for _ in range(MAX_SUBJECTS + 2)]
    page = browser.get("/compare", {"job": [job.pk for job in jobs]})
    assert "the last 2 of 52 are left out" in text_of(page)
    assert page.content.decode().count('class="cm-number"') == MAX_SUBJECTS
    answer = browser.get("/api/v1/comparison", {"job": [job.pk for job in jobs]})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/job")


def test_an_empty_comparison_tells_where_to_choose(browser: Client) -> None:
    assert "Nothing to compare" in text_of(browser.get("/compare"))


def test_more_things_need_no_more_statements(people: People, digits: DatasetVersion) -> None:
    def statements(count: int) -> int:
        jobs = [trained(people, digits, 0.9, fit={"epochs": 3 + at}) for at in range(count)]
        searches = []
        for _ in range(count):
            experiment = make_experiment(project=people.project, by=people.owner)
            searches.append(make_job(experiment=experiment, by=people.owner, state="running"))
            make_trials(searches[-1], 2)
        model = make_model(project=people.project, by=people.owner, versions=count)
        ModelVersion.objects.filter(model=model).update(source_job=jobs[0])
        lists = {
            "experiments": [str(job.experiment_id) for job in jobs],
            "versions": [f"{model.name}:{number + 1}" for number in range(count)],
        }
        with CaptureQueriesContext(connection) as queries:
            assert len(compared(people, *jobs, *searches, **lists)["subjects"]) == 4 * count
        return len(queries)

    assert statements(1) == statements(6) <= 16


def test_learning_curves_carry_the_names_of_what_is_compared(
    people: People, digits: DatasetVersion, browser: Client
) -> None:
    one, two = trained(people, digits, 0.9), trained(people, digits, 0.8)
    for job in (two, one):
        store_curve(job, "val_loss", [0.5, 0.4])
    assert compared(people, one, two)["curves"] == ["val_loss"]
    address = f"/api/v1/comparison/curves?job={two.pk}&job={one.pk}&name=val_loss"
    answer = browser.get(address).json()
    assert [(series["place"], series["job"]) for series in answer["series"]] == [(0, two.pk), (1, one.pk)]
    assert answer["series"][0]["subject"] == f"{two.label} · job {two.pk}"
    assert [point[1] for point in answer["series"][1]["points"]] == [0.5, 0.4]


def test_lists_lead_to_the_comparison(people: People, digits: DatasetVersion, browser: Client) -> None:
    job = trained(people, digits, 0.9)
    make_model("digits", project=people.project, by=people.owner)
    boxes = {
        "/jobs": f'name="job" value="{job.pk}"',
        "/p/yard/experiments": f'name="experiment" value="{job.experiment_id}"',
        "/models/digits": 'name="version" value="digits:1"',
    }
    for address, box in boxes.items():
        page = " ".join(browser.get(address).content.decode().split())
        assert box in page and 'formaction="/compare"' in page, address


def test_a_metric_is_drawn_against_the_size_of_the_models(people: People, browser: Client) -> None:
    model = make_model("digits", project=people.project, by=people.owner, versions=2)
    page = browser.get("/compare?version=digits:1&version=digits:2").content.decode()
    assert page.count("<circle") == model.versions.count()
    assert "Gates measure it when a promotion is requested" in page
