"""A model with layers and a metric of its own: from a search and from a file to an endpoint."""

import pytest

from tests import own_code
from tests.flow.specs import spec, whole_line
from tests.flow.test_own_code import model, needs_sandbox, strongest, upload
from tests.flow.yard import PROJECT, RunningYard
from tests.ops.conftest import wait_for
from webapp.demo.client import Body

pytestmark = pytest.mark.timeout(1800)

ROWS = [[5.1, 3.5, 1.4, 0.2], [6.7, 3.0, 5.2, 2.3]]


def validated(yard: RunningYard, model: str) -> Body | None:
    found: Body = yard.ada.get(f"/models/{model}/versions/1")
    return None if found["state"] == "validating" else found


@needs_sandbox
def test_a_model_with_own_layers_and_data_is_searched_by_its_metric_pooled_quantized_approved_and_served(
    flow_yard: RunningYard,
) -> None:
    digest = upload(flow_yard, "layers.py", own_code.OWN_OBJECTS + own_code.LOADS_IRIS)
    loading = flow_yard.ada.post(f"/code/{digest}/data", {"dataset": "own-iris"})
    loaded = flow_yard.until_completed(loading["job"])
    assert loaded["sandbox"]["network"] is False
    assert loaded["results"]["rows"]["test"] == 30
    data = flow_yard.until_ready("own-iris", project=PROJECT)
    assert (data["code"]["digest"], data["schema"]["part_rows"]) == (digest, [90, 30, 30])
    objective = {"metric": "val_macro_recall", "direction": "max"}
    body = spec(
        data={"dataset": "own-iris"},
        model=model(digest),
        # The code declares the space.
        search={"max_trials": 2, "executions_per_trial": 1, "parallel_trials": 1, "objective": objective},
        fit={"epochs": 12, "batch_size": 16},
        after=whole_line("own-layers") | {"retrain": {"top": 2, "epochs_cap": 12}},
    )
    job = flow_yard.until_completed(flow_yard.submit(body))
    trials = flow_yard.ada.get(f"/jobs/{job['id']}/trials")["items"]
    assert [sorted(trial["values"]) for trial in trials] == [["units"]] * 2
    versions = flow_yard.ada.get("/models/own-layers/versions")["items"]
    assert {each["what"] for each in versions} == {"best", "ensemble", "quantized"}
    for each in versions:
        assert each["state"] == "candidate", each["error"]
        assert each["code"]["needed"] is True
        assert each["identity"] != each["digest"]
        assert each["lineage"]["code"] == digest
    numbers = {each["what"]: each["number"] for each in versions}
    best = numbers["best"]
    flow_yard.promote("own-layers", best)
    answered, predictions = flow_yard.predict("own-layers", ROWS)
    assert answered == best
    assert all(abs(sum(row) - 1) < 1e-4 for row in predictions)
    assert {len(row) for row in predictions} == {3}
    replicas = flow_yard.ada.get("/endpoints/own-layers")["replicas"]
    processes = [process for replica in replicas for process in replica["processes"]]
    assert {process["sandbox"] for process in processes} == {strongest(flow_yard)}

    # It is validated beside the gates.
    file = flow_yard._http.get(
        f"{flow_yard.urls['web']}/api/v1/artifacts/{versions[0]['digest']}", headers=flow_yard.bearer("ada")
    ).content
    flow_yard.ada.post("/models", {"name": "own-layers-import", "project": PROJECT})
    made = flow_yard._http.post(
        f"{flow_yard.urls['web']}/api/v1/models/own-layers-import/versions",
        headers=flow_yard.bearer("ada"),
        data={"code": digest},
        files={"file": ("m.keras", file)},
    )
    assert made.status_code == 201, made.text

    # Both have code now. Each is executed in a sandbox of its own, and a third process compares them.
    _, judged = flow_yard.gated("own-layers", numbers["ensemble"])
    gates = {gate["name"]: gate for gate in judged["gates"]}
    assert gates["metric"]["champion"] is not None, gates["metric"]["detail"]
    assert "in a sandbox" in gates["loads"]["detail"]
    assert flow_yard.job(judged["gate_job"])["sandbox"] == {"level": strongest(flow_yard), "network": False}

    imported = wait_for(lambda: validated(flow_yard, "own-layers-import"), "the import to be validated")
    assert (imported["state"], imported["code"]["needed"]) == ("candidate", True)
