"""From an experiment to a served model, through REST and the prediction server."""

from typing import Any

import pytest

from tests.flow.conftest import TRIALS, Watched
from tests.flow.specs import search, spec, whole_line
from tests.flow.yard import RunningYard
from webapp.demo import table

pytestmark = pytest.mark.timeout(1800)


def rows_of(yard: RunningYard, dataset: str, count: int) -> list[Any]:
    """Return the first rows of a data set as the prediction port wants them."""
    version = yard.ada.get(f"/datasets/{dataset}/versions/1")
    preview = yard.ada.get(f"/datasets/{dataset}/versions/1/preview")["rows"][:count]
    return [[row[name] for name in version["schema"]["features"]] for row in preview]


def versions_of(job: dict[str, Any]) -> dict[str, int]:
    return {entry["what"]: entry["number"] for entry in job["results"]["versions"]}


def test_regression_from_grid_to_prediction(flow_yard: RunningYard) -> None:
    body = spec(
        "diabetes",
        search=search("grid", metric="val_loss", executions_per_trial=1, parallel_trials=1),
        after=whole_line("progress"),
    )
    job = flow_yard.until_completed(flow_yard.submit(body))
    versions = versions_of(job)
    assert set(versions) == {"best", "ensemble", "quantized"}
    flow_yard.promote("progress", versions["quantized"])
    served, answers = flow_yard.predict("progress", rows_of(flow_yard, "diabetes", 2))
    assert served == versions["quantized"]
    assert all(len(row) == 1 for row in answers)


def test_trees_from_a_table_with_gaps_to_a_served_answer(flow_yard: RunningYard) -> None:
    version = flow_yard.upload("returns", "returns.csv", table.orders(), target=table.TARGET)
    assert (version["rows"], version["schema"]["task"]) == (table.ROWS, "binary")
    assert {"age", "city", "size", "comment"} <= set(version["schema"]["features"])
    assert table.TARGET not in version["schema"]["features"]
    asked = search(
        metric="val_accuracy",
        executions_per_trial=1,
        parallel_trials=1,
        space=[{"name": "min_rows", "kind": "choice", "values": [5, 20]}],
    )
    body = spec(
        "returns",
        model={"kind": "template", "template": "trees", "args": {}},
        fit={"epochs": 40, "early_stopping": {"patience": 5}},
        search=asked,
        after={
            "retrain": {"top": 2, "patience": 5, "epochs_cap": 40},
            "ensemble": {},
            "register": {"model": "returns", "what": ["best", "ensemble"]},
        },
    )
    job = flow_yard.until_completed(flow_yard.submit(body))
    versions = versions_of(job)
    assert set(versions) == {"best", "ensemble"}
    assert job["results"]["metrics"]["test"]["accuracy"] > 0.8, job["results"]
    flow_yard.promote("returns", versions["ensemble"])
    row = {"age": None, "city": "Nowhere", "size": "M", "comment": "too small, poor quality"}
    served, answers = flow_yard.predict("returns", [row, {**row, "comment": "fits well, good quality"}])
    assert served == versions["ensemble"]
    assert answers[0][0] > 0.5 > answers[1][0]


def test_a_bayesian_search_runs_to_its_end(flow_yard: RunningYard, watched: Watched) -> None:
    trials = flow_yard.ada.get(f"/jobs/{watched.job}/trials")["items"]
    assert [trial["state"] for trial in trials] == ["completed"] * TRIALS
    assert len({trial["values"]["learning_rate"] for trial in trials}) == TRIALS
