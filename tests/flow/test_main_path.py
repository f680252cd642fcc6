"""From an experiment to a served model, through REST and the prediction server."""

from typing import Any

import pytest

from tests.flow.conftest import TRIALS, Watched
from tests.flow.specs import search, spec, whole_line
from tests.flow.yard import RunningYard

pytestmark = pytest.mark.timeout(1800)


def rows_of(installation: RunningYard, dataset: str, count: int) -> list[Any]:
    """Return the first rows of a data set as the prediction port wants them."""
    version = installation.ada.get(f"/datasets/{dataset}/versions/1")
    preview = installation.ada.get(f"/datasets/{dataset}/versions/1/preview")["rows"][:count]
    return [[row[name] for name in version["schema"]["features"]] for row in preview]


def versions_of(job: dict[str, Any]) -> dict[str, int]:
    return {entry["what"]: entry["number"] for entry in job["results"]["versions"]}


def test_regression_from_grid_to_prediction(flow_installation: RunningYard) -> None:
    body = spec(
        "diabetes",
        search=search("grid", metric="val_loss", executions_per_trial=1, parallel_trials=1),
        after=whole_line("progress"),
    )
    job = flow_installation.until_completed(flow_installation.submit(body))
    versions = versions_of(job)
    assert set(versions) == {"best", "ensemble", "quantized"}
    flow_installation.promote("progress", versions["quantized"])
    served, answers = flow_installation.predict("progress", rows_of(flow_installation, "diabetes", 2))
    assert served == versions["quantized"]
    assert all(len(row) == 1 for row in answers)


def test_a_bayesian_search_runs_to_its_end(flow_installation: RunningYard, watched: Watched) -> None:
    trials = flow_installation.ada.get(f"/jobs/{watched.job}/trials")["items"]
    assert [trial["state"] for trial in trials] == ["completed"] * TRIALS
    assert len({trial["values"]["learning_rate"] for trial in trials}) == TRIALS
