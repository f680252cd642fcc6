"""Fine-tuning of a registered and of an imported model, from the search to the served version."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.flow.specs import search, spec, whole_line
from tests.flow.test_main_path import rows_of, versions_of
from tests.flow.yard import RunningYard
from tests.imported_model import imported_model
from tests.ops.conftest import wait_for

pytestmark = pytest.mark.timeout(1800)


def is_in(state: str, job: Any) -> bool:
    return bool(job["state"] == state)


def version_of(model: str, **args: Any) -> dict[str, Any]:
    return {"kind": "version", "model": model, "number": 1, "args": args}


def test_a_registered_version_is_searched_further_pooled_quantized_and_served(flow_yard: RunningYard) -> None:
    first = spec(after={"register": {"model": "flowers", "what": ["best"]}})
    flow_yard.until_completed(flow_yard.submit(first))
    flow_yard.ada.put("/models/flowers/aliases/champion", {"version": 1})
    space = [
        {"name": "freeze_to", "kind": "choice", "values": ["none", "all"]},
        {"name": "learning_rate_factor", "kind": "float", "min": 0.1, "max": 1.0, "sampling": "log"},
    ]
    alias = {"kind": "version", "model": "flowers", "alias": "champion", "args": {"head": "new"}}
    body = spec(model=alias, search=search(space=space, parallel_trials=1), after=whole_line("flowers-tuned"))
    job = flow_yard.until_completed(flow_yard.submit(body))
    versions = versions_of(job)
    assert set(versions) == {"best", "ensemble", "quantized"}
    assert job["results"]["metrics"]["test"]["accuracy"] > 0.6, job["results"]
    trials = flow_yard.ada.get(f"/jobs/{job['id']}/trials")["items"]
    assert [[run["state"] for run in trial["executions"]] for trial in trials] == [["completed"] * 2] * 2
    made = flow_yard.ada.get(f"/models/flowers-tuned/versions/{versions['best']}")
    source = made["lineage"]["fine_tuned_from"]
    base = flow_yard.ada.get("/models/flowers/versions/1")
    assert (source["model"], source["number"], source["digest"]) == ("flowers", 1, base["digest"])
    flow_yard.promote("flowers-tuned", versions["ensemble"])
    served, answers = flow_yard.predict("flowers-tuned", rows_of(flow_yard, "iris", 2))
    assert served == versions["ensemble"]
    assert all(len(row) == 3 for row in answers)


def test_a_training_of_an_imported_model_continues_after_a_stop(
    flow_yard: RunningYard, tmp_path: Path
) -> None:
    import_model(flow_yard, tmp_path)
    args = {"head": "new", "freeze_to": "body/low"}
    fit = {"epochs": 3000, "batch_size": 16, "seed": 1}
    after = {"register": {"model": "imported-tuned", "what": ["best"]}}
    job_id = flow_yard.submit(spec(model=version_of("imported", **args), fit=fit, after=after))
    flow_yard.until(job_id, lambda job: job["state"] == "running", "training")
    for order, state in (
        ("pause", "paused"),
        ("resume", "running"),
        ("stop", "stopped"),
        ("retry", "completed"),
    ):
        flow_yard.ada.post(f"/jobs/{job_id}/{order}")
        flow_yard.until(job_id, partial(is_in, state), f"{state} after {order}")
    assert versions_of(flow_yard.job(job_id)) == {"best": 1}


def import_model(yard: RunningYard, folder: Path) -> None:
    """Upload a model for two classes of four numbers, and wait until it is a candidate."""
    content = imported_model(folder / "imported.keras")
    yard.ada.post("/models", {"project": "flow", "name": "imported"})
    answer = yard._http.post(
        f"{yard.urls['web']}/api/v1/models/imported/versions",
        headers=yard.bearer("ada"),
        files={"file": ("imported.keras", content)},
    )
    assert answer.status_code == 201, answer.text

    def candidate() -> dict[str, Any] | None:
        found = yard.ada.get("/models/imported/versions/1")
        return None if found["state"] == "validating" else found

    assert wait_for(candidate, "the import to be validated")["state"] == "candidate"
