"""A model of own code with its own data, from its file over REST to a served prediction."""

from typing import Any

import pytest

from tests import own_code
from tests.flow.specs import whole_line
from tests.flow.yard import PROJECT, RunningYard

pytestmark = pytest.mark.timeout(1800)

LOADS_IRIS = """
from sklearn.datasets import load_iris

def load_data(split):
    found = load_iris()
    part = {"train": 0, "validation": 1, "test": 2}[split]
    rows = [i for i in range(150) if max(i % 5 - 2, 0) == part]
    return found.data[rows], found.target_names[found.target[rows]]
"""
ROWS = [[5.1, 3.5, 1.4, 0.2], [6.7, 3.0, 5.2, 2.3]]


def stored(yard: RunningYard, text: str) -> str:
    body = {"project": PROJECT, "files": [{"path": "model.py", "text": text}]}
    return str(yard.ada.post("/code", body)["digest"])


def spec_of(digest: str, entry: str, metric: str, direction: str, **parts: Any) -> dict[str, Any]:
    search = {
        "max_trials": 2,
        "executions_per_trial": 2,
        "objective": {"metric": metric, "direction": direction},
    }
    return {
        "version": 1,
        "data": {"dataset": "iris"},
        "model": {"kind": "code", "digest": digest, "entry": entry},
        "fit": {"epochs": 20, "batch_size": 16},
        "search": search,
        **parts,
    }


def test_layers_and_metrics_of_own_code_from_a_file_to_a_served_answer(flow_yard: RunningYard) -> None:
    digest = stored(flow_yard, own_code.OWN_OBJECTS + LOADS_IRIS)
    loading = flow_yard.ada.post(f"/code/{digest}/data", {"dataset": "own-iris"})
    loaded = flow_yard.until_completed(loading["job"])
    assert loaded["sandbox"]["network"] is False and loaded["results"]["rows"]["test"] == 30
    data = flow_yard.until_ready("own-iris", project=PROJECT)
    assert (data["code"]["digest"], data["schema"]["part_rows"]) == (digest, [90, 30, 30])
    body = spec_of(digest, "build_model", "val_macro_recall", "max", after=whole_line("own-layers"))
    body["data"] = {"dataset": "own-iris"}
    job = flow_yard.until_completed(flow_yard.submit(body, name="own layers"))
    versions = {entry["what"]: entry["number"] for entry in job["results"]["versions"]}
    assert set(versions) == {"best", "ensemble", "quantized"}
    trials = flow_yard.ada.get(f"/jobs/{job['id']}/trials")["items"]
    assert [sorted(trial["values"]) for trial in trials] == [["units"]] * 2
    flow_yard.promote("own-layers", versions["best"])
    served, answers = flow_yard.predict("own-layers", ROWS)
    assert served == versions["best"]
    assert all(abs(sum(row) - 1) < 1e-4 for row in answers)


def test_code_that_cannot_build_ends_its_search_with_the_cause(flow_yard: RunningYard) -> None:
    digest = stored(flow_yard, own_code.BROKEN["nothing"][0])
    job = flow_yard.until_final(flow_yard.submit(spec_of(digest, "build_model", "val_loss", "min")))
    assert (job["state"], job["error"]["code"]) == ("failed", "code_build")
    assert "returned nothing" in job["error"]["message"]
