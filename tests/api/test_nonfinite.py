"""NaN and infinities are null in every answer, and the object that has one is marked with `nonfinite`."""

import json
from typing import Any

import pytest
from django.test import Client

from jobs.messages import events as contract
from jobs.models import Attempt, Execution, Trial
from jobs.queries.runs.codec import pack_events, unpack_events
from tests.jobs.yard import PretendWorker, Yard, begun, make_yard, placed_search
from tests.people import browser_of

COLUMNS = "trials/columns"


@pytest.fixture
def installation(db: None) -> Yard:
    return make_yard()


@pytest.fixture
def worker(installation: Yard) -> PretendWorker:
    return PretendWorker(slots=2)


@pytest.fixture
def attempt(installation: Yard, worker: PretendWorker) -> Attempt:
    """Return a running trial's attempt."""
    _, placed = placed_search(installation, worker)
    worker.report(placed[0], begun(placed[0].trials.get()))
    return placed[0]


@pytest.fixture
def trial(attempt: Attempt) -> Trial:
    return attempt.trials.get()


def read(installation: Yard, trial: Trial, path: str) -> Any:
    client: Client = browser_of(installation.owner)
    text = client.get(f"/api/v1/jobs/{trial.job_id}/{path}").content
    return json.loads(text, parse_constant=pytest.fail)


def of_type(answer: Any, kind: str) -> list[Any]:
    return [event for event in answer["items"] if event["type"] == kind]


def test_a_metric_event_with_a_value_that_is_not_finite_is_marked(
    installation: Yard, worker: PretendWorker, attempt: Attempt, trial: Trial
) -> None:
    series: dict[str, Any] = {"trial": trial.number, "execution": 1, "names": ("loss",)}
    for value in (0.5, None):
        points = contract.Points(time=1.0, at=(1.0,), times=(1.0,), values=((value,),), **series)
        worker.report(attempt, points)
    finite, other = of_type(read(installation, trial, "events"), "metric")
    assert "nonfinite" not in finite
    assert (other["points"], other["nonfinite"]) == ([["loss", 1.0, None, 1.0]], True)


def test_points_that_are_stored_one_by_one_are_marked_too() -> None:
    events = [{"type": "metric", "points": [["loss", 1, value, 1.0]]} for value in (0.5, None)]
    assert [event.get("nonfinite") for event in unpack_events(pack_events(events))] == [None, True]


def test_an_execution_keeps_its_metric_that_is_not_finite_as_null(
    installation: Yard, worker: PretendWorker, attempt: Attempt, trial: Trial
) -> None:
    metrics = {"val_auc": None, "val_loss": 0.5}
    done = contract.ExecutionDone(
        time=1.0, trial=trial.number, execution=1, state="completed", metrics=metrics
    )
    worker.report(attempt, done)
    (event,) = of_type(read(installation, trial, "events"), "execution")
    assert (event["metrics"], event["nonfinite"]) == (metrics, True)
    assert read(installation, trial, COLUMNS)["nonfinite"] is True


def test_columns_with_a_value_beyond_single_precision_are_marked(installation: Yard, trial: Trial) -> None:
    assert "nonfinite" not in read(installation, trial, COLUMNS), "an unknown score is null without a mark"
    Trial.objects.filter(pk=trial.pk).update(score=1e300)
    columns = read(installation, trial, COLUMNS)
    assert (columns["score"][0], columns["nonfinite"]) == (None, True)


def test_columns_of_finite_values_are_not_marked(installation: Yard, trial: Trial) -> None:
    Execution.objects.filter(trial=trial).update(metrics={"val_auc": 0.5})
    assert "nonfinite" not in read(installation, trial, COLUMNS)
