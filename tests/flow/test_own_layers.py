"""A model with a layer of its own: from a search to an endpoint, and from a file to an endpoint."""

import pytest

from tests.flow.specs import search, spec
from tests.flow.test_own_code import needs_sandbox, strongest, upload
from tests.flow.yard import PROJECT, RunningYard
from tests.ops.conftest import wait_for
from webapp.demo.client import Body

pytestmark = pytest.mark.timeout(1800)

LAYERS = """
import keras
from keras import layers


@keras.saving.register_keras_serializable("flow")
class Doubled(layers.Layer):
    def call(self, x):
        return x * 2.0


def build_model(hp):
    units = hp.Int("units", 4, 8, step=4)
    model = keras.Sequential([Doubled(), layers.Dense(units, "relu"), layers.Dense(3, "softmax")])
    model.compile(keras.optimizers.Adam(0.02), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
"""


def validated(yard: RunningYard, model: str) -> Body | None:
    found: Body = yard.ada.get(f"/models/{model}/versions/1")
    return None if found["state"] == "validating" else found


@needs_sandbox
def test_a_model_with_its_own_layer_is_searched_pooled_quantized_approved_and_served(
    flow_yard: RunningYard,
) -> None:
    digest = upload(flow_yard, "doubled.py", LAYERS)
    after = {
        "retrain": {"top": 2, "epochs_cap": 20},
        "ensemble": {"method": "mean"},
        "quantize": {"mode": "int8"},
        "register": {"model": "doubled", "what": ["best", "ensemble", "quantized"]},
    }
    body = spec(
        model={"kind": "code", "digest": digest, "entry": "build_model"},
        search=search(
            "grid",
            metric="val_accuracy",
            space=[{"name": "units", "kind": "int", "min": 4, "max": 8, "step": 4}],
        ),
        fit={"epochs": 20, "batch_size": 16},
        after=after,
    )
    flow_yard.until_completed(flow_yard.submit(body))
    versions = flow_yard.ada.get("/models/doubled/versions")["items"]
    assert {each["what"] for each in versions} == {"best", "ensemble", "quantized"}
    for each in versions:
        assert each["state"] == "candidate", each["error"]
        assert each["code"]["needed"] is True
        assert each["identity"] != each["digest"]
        assert each["lineage"]["code"] == digest
    numbers = {each["what"]: each["number"] for each in versions}
    best = numbers["best"]
    flow_yard.promote("doubled", best)
    answered, predictions = flow_yard.predict("doubled", [[5.1, 3.5, 1.4, 0.2]])
    assert answered == best
    assert len(predictions[0]) == 3
    replicas = flow_yard.ada.get("/endpoints/doubled")["replicas"]
    processes = [process for replica in replicas for process in replica["processes"]]
    assert {process["sandbox"] for process in processes} == {strongest(flow_yard)}

    # Both have code now. Each is executed in a sandbox of its own, and a third process compares them.
    _, judged = flow_yard.gated("doubled", numbers["ensemble"])
    gates = {gate["name"]: gate for gate in judged["gates"]}
    assert gates["metric"]["champion"] is not None, gates["metric"]["detail"]
    assert "in a sandbox" in gates["loads"]["detail"]
    assert flow_yard.job(judged["gate_job"])["sandbox"] == {"level": strongest(flow_yard), "network": False}

    file = flow_yard._http.get(
        f"{flow_yard.urls['web']}/api/v1/artifacts/{versions[0]['digest']}", headers=flow_yard.bearer("ada")
    ).content
    flow_yard.ada.post("/models", {"name": "doubled-import", "project": PROJECT})
    made = flow_yard._http.post(
        f"{flow_yard.urls['web']}/api/v1/models/doubled-import/versions",
        headers=flow_yard.bearer("ada"),
        data={"code": digest},
        files={"file": ("m.keras", file)},
    )
    assert made.status_code == 201, made.text
    imported = wait_for(lambda: validated(flow_yard, "doubled-import"), "the import to be validated")
    assert (imported["state"], imported["code"]["needed"]) == ("candidate", True)
