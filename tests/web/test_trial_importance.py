"""Hyperparameter importance, and trial downloads."""

import csv
import io
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.test import Client
from django.utils import timezone

from jobs.actions.search import analyses
from jobs.actions.transition import move_trial
from jobs.messages.analysis import ImportanceRequest
from jobs.models import Analysis, Job, MetricChunk, MetricSeries
from jobs.queries.runs.codec import pack_columns
from jobs.queries.search import exports, importance
from jobs.states import TrialState
from tests.factories import SEARCH, make_experiment, make_job, make_trials
from tests.people import People, browser_of
from tests.seeded import seed_search
from tests.web.test_trial_columns import SPACE
from webapp import analysis


@pytest.fixture
def search(people: People) -> Job:
    spec = {**SEARCH, "search": {**SEARCH["search"], "space": SPACE}}
    experiment = make_experiment(project=people.project, by=people.owner, spec=spec)
    job = make_job(experiment=experiment, by=people.owner, state="running")
    for number, trial in enumerate(make_trials(job, 4), start=1):
        trial.values = {"units": 16 * number, "learning_rate": 10.0**-number, "optimizer": "sgd"}
        trial.save(update_fields=["values"])
    return job


@pytest.fixture
def browser(people: People) -> Client:
    return browser_of(people.owner)


def test_the_request_for_importance_has_the_direction_and_the_choices(people: People) -> None:
    job = seed_search(people.project, by=people.owner, trials=12)
    request = importance.analysis_request(job)
    assert request.direction == "max"
    assert request.choices == {"optimizer": ("adam", "rmsprop", "sgd")}


def test_importance_needs_ten_completed_trials(search: Job, browser: Client) -> None:
    answer = browser.get(f"/api/v1/jobs/{search.pk}/importance").json()
    assert (answer["state"], answer["needs"], answer["completed"]) == ("too_few", 10, 4)
    assert (answer["pruned"], answer["over"]) == (0, False)


def test_importance_counts_pruned_trials_and_knows_whether_the_search_is_over(search: Job) -> None:
    search.trials.filter(number__gt=1).update(state="pruned")
    search.state = "completed"
    said = importance.importance_out(search)
    assert (said.completed, said.pruned, said.over) == (1, 3, True)
    assert not Analysis.objects.exists()


def test_a_result_has_the_number_of_its_trials(search: Job, monkeypatch: Any) -> None:
    monkeypatch.setattr(importance, "FEWEST_TRIALS", 3)
    claimed = analyses.claim_analysis(search, Analysis.Kind.IMPORTANCE)
    assert claimed is not None
    assert analyses.claim_analysis(search, Analysis.Kind.IMPORTANCE) is None, "two compute at a time"
    analyses.finish_analysis(claimed, trials=4, result={"used": 4})
    assert importance.importance_out(search).state == "fresh"
    move_trial(search.trials.get(number=3), TrialState.QUEUED)
    stale = importance.importance_out(search)
    assert (stale.state, stale.trials, stale.completed) == ("stale", 4, 3)


def test_a_result_of_an_earlier_release_is_computed_again(search: Job, monkeypatch: Any) -> None:
    monkeypatch.setattr(importance, "FEWEST_TRIALS", 3)
    entry = {"name": "units", "alone": 0.5, "spread": 0.1, "impurity": 0.6}
    Analysis.objects.create(
        job=search,
        kind=Analysis.Kind.IMPORTANCE,
        trials=4,
        result={"used": 4, "trees": 64, "explained": 0.9, "importances": [entry]},
    )
    said = importance.importance_out(search)
    assert (said.state, said.result, said.trials) == ("missing", None, 0)


def test_a_result_that_comes_too_late_is_dropped(search: Job) -> None:
    late = analyses.claim_analysis(search, Analysis.Kind.IMPORTANCE)
    Analysis.objects.update(until=timezone.now() - timedelta(seconds=1))
    current = analyses.claim_analysis(search, Analysis.Kind.IMPORTANCE)
    assert late is not None and current is not None
    analyses.finish_analysis(late, trials=1, result={})
    assert Analysis.objects.get().result is None


def test_the_analysis_process_returns_the_importance_of_hyperparameters() -> None:
    values = [tuple(n % 8 / 7 for n in range(40)), tuple(n % 5 / 4 for n in range(40))]
    request = ImportanceRequest(names=("units", "rate"), columns=tuple(values), scores=tuple(values[0]))
    answer = analysis.run_process(request.model_dump_json())
    assert [entry["name"] for entry in answer["importances"]] == ["units", "rate"]
    assert answer["importances"][0]["alone"] > 0.9


def downloaded(browser: Client, path: str, **query: Any) -> list[dict[str, str]]:
    answer = browser.get(path, query)
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(b"".join(answer).decode())))


def test_trials_are_downloaded_with_one_row_per_execution(search: Job, browser: Client) -> None:
    rows = downloaded(browser, f"/api/v1/jobs/{search.pk}/trials.csv")
    assert len(rows) == 8
    assert (rows[0]["trial"], rows[0]["units"], rows[1]["execution"]) == ("1", "16", "2")
    assert float(rows[5]["val_accuracy"]) == pytest.approx(0.93)
    assert len(downloaded(browser, f"/api/v1/jobs/{search.pk}/trials.csv", trials="2")) == 2


def test_downloaded_curves_contain_repeated_epochs_once(search: Job, browser: Client) -> None:
    trial = search.trials.get(number=2)
    for attempt, xs in ((1, [1.0, 2.0]), (2, [2.0, 3.0])):
        series = MetricSeries.objects.create(
            job=search, trial=trial, execution=1, attempt=attempt, name="=loss", count=2
        )
        points = np.array([xs, [attempt, np.nan], [0.0, 0.0]])
        MetricChunk.objects.create(
            series=series, first_x=xs[0], last_x=xs[1], count=2, data=pack_columns(points)
        )
    rows = downloaded(browser, f"/api/v1/jobs/{search.pk}/metrics.csv")
    assert [(row["x"], row["value"]) for row in rows] == [("1.0", "1.0"), ("2.0", "2.0"), ("3.0", "")]
    assert {row["metric"] for row in rows} == {"'=loss"}, "a spreadsheet would evaluate it"


def test_a_metric_with_a_comma_in_its_name_is_asked_for_in_quotes(search: Job, browser: Client) -> None:
    for name in ("top 1, top 5", "loss"):
        series = MetricSeries.objects.create(
            job=search, trial=search.trials.get(number=2), execution=1, attempt=1, name=name, count=1
        )
        points = pack_columns(np.array([[1.0], [0.5], [0.0]]))
        MetricChunk.objects.create(series=series, first_x=1.0, last_x=1.0, count=1, data=points)
    path = f"/api/v1/jobs/{search.pk}/metrics"
    (row,) = downloaded(browser, f"{path}.csv", names='"top 1, top 5"')
    assert row["metric"] == "top 1, top 5"
    read = browser.get(path, {"names": '"top 1, top 5", loss'}).json()["series"]
    assert {series["name"] for series in read} == {"top 1, top 5", "loss"}
    refused = browser.get(path, {"names": '"top 1, top 5'})
    assert (refused.status_code, "in quotes" in refused.content.decode()) == (422, True)
    page = browser.get(f"/jobs/{search.pk}/trials/2").content.decode()
    assert "[[&quot;loss&quot;], [&quot;top 1, top 5&quot;]]" in page


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@A1", "\t=1", "\r=1"])
def test_only_texts_are_escaped_against_formulas(text: str) -> None:
    assert exports.csv_cell(text) == f"'{text}"
    assert exports.csv_cell(-1.5) == -1.5
    assert exports.csv_cell("adam") == "adam"
