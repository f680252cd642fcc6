"""Estimates for a mesh of GPUs are made by a real worker without any, and are then part of the plan."""

from typing import Any

import pytest

from tests.flow.specs import spec
from tests.flow.test_own_code import model, needs_sandbox, upload
from tests.flow.yard import PROJECT, RunningYard

pytestmark = pytest.mark.timeout(1800)

MESH: dict[str, Any] = {"shape": [2, 4], "axis_names": ["data", "model"], "devices": "gpu"}
CODE = """
import keras
from keras import layers

class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = layers.Dense(32, activation="relu")
        self.classes = layers.Dense(3, activation="softmax")

    def call(self, x):
        return self.classes(self.hidden(x))

def build_model(hp):
    model = Net()
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
"""


def estimated(installation: RunningYard, body: dict[str, Any]) -> dict[str, Any]:
    """Request an estimate, wait for it, and request it again."""
    request = {"project": PROJECT, "spec": body, "device_gib": 1}
    job = installation.ada.post("/experiments/mesh-estimates", request)["job"]
    installation.until_completed(job)
    answer: dict[str, Any] = installation.ada.post("/experiments/mesh-estimates", request)
    assert answer["job"] == job
    return answer


def test_a_template_is_estimated_for_gpus_that_no_worker_has(flow_installation: RunningYard) -> None:
    flow_installation.until_ready("iris")
    mesh = {**MESH, "layout": [{"match": "dense_1/kernel", "axes": [None, "model"]}]}
    answer = estimated(flow_installation, spec(mesh=mesh))
    step = answer["step"]
    # Of the first kernel each device has a quarter; the other variables are whole.
    assert (step["devices"], step["weights"]) == (8, 4 * (4 * 16 // 4 + 16 + 16 * 3 + 3))
    assert step["compiled_for"] == "cpu" and step["collectives"]
    assert answer["largest"]["limited_by"] == "rows" and answer["versions"]["keras"]


@needs_sandbox
def test_own_code_is_estimated_in_its_sandbox(flow_installation: RunningYard) -> None:
    digest = upload(flow_installation, "net.py", CODE)
    body = spec(model=model(digest), fit={"epochs": 2, "batch_size": 16})
    answer = estimated(flow_installation, {**body, "mesh": MESH})
    paths = [variable["path"].rpartition("net/")[2] for variable in answer["variables"]["variables"]]
    assert paths == ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"]
    assert answer["step"]["weights"] == 4 * (4 * 32 + 32 + 32 * 3 + 3) and answer["notes"] == []
    plan = flow_installation.ada.post("/experiments/validate", {"project": PROJECT, "spec": body})["plan"]
    assert [row["path"] for row in plan["variables"]] == [
        variable["path"] for variable in answer["variables"]["variables"]
    ]
