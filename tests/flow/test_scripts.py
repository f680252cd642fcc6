"""From a script of a user to a search over its arguments, and to a served version of its model."""

from typing import Any

import pytest

from tests.flow.yard import PROJECT, RunningYard

pytestmark = pytest.mark.timeout(1800)

SCRIPT = """
import argparse
import os

import numpy as np
import pyarrow.parquet as pq

import trainyard_report

parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, default=0.1, help="of the steps")
parser.add_argument("--epochs", type=int, default=5)
given = parser.parse_args()

table = pq.read_table(trainyard_report.data())
names = [name for name in table.column_names if name not in ("species", "trainyard_part")]
x = np.stack([table[name].to_numpy() for name in names], axis=1).astype("float32")
labels = sorted(set(table["species"].to_pylist()))
y = np.array([labels.index(name) for name in table["species"].to_pylist()])
part = np.array(table["trainyard_part"].to_pylist())

weights, biases = np.zeros((4, 3), "float32"), np.zeros(3, "float32")
train = part == "train"
for epoch in range(1, given.epochs + 1):
    scores = x[train] @ weights + biases
    chances = np.exp(scores - scores.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    wrong = chances - np.eye(3)[y[train]]
    weights -= (given.rate * x[train].T @ wrong / train.sum()).astype("float32")
    biases -= (given.rate * wrong.mean(0)).astype("float32")
    checked = part == "validation"
    accuracy = float((np.argmax(x[checked] @ weights + biases, 1) == y[checked]).mean())
    trainyard_report.report(epoch, accuracy=accuracy, rate=given.rate)

import keras

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
model.layers[0].set_weights([weights, biases])
model.save(trainyard_report.output("model.keras"))
with open(trainyard_report.output("notes/run.txt"), "w") as file:
    file.write(f"rate {given.rate}")
"""


def upload(yard: RunningYard, text: str, name: str = "train.py") -> dict[str, Any]:
    """Store a script in the project and return its version of code."""
    answer = yard._http.post(
        f"{yard.urls['web']}/api/v1/code",
        headers=yard.bearer("ada"),
        data={"project": PROJECT},
        files={"file": (name, text.encode())},
    )
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def spec(digest: str, **parts: Any) -> dict[str, Any]:
    """Return the spec of a script without data."""
    model = {"kind": "script", "digest": digest, "entry": "train.py", "args": parts.pop("args", {})}
    return {"version": 1, "model": model, **parts}


def test_a_script_is_searched_and_the_model_that_it_saves_is_served(flow_yard: RunningYard) -> None:
    code = upload(flow_yard, SCRIPT)
    assert code["entries"] == ["train.py"]
    body = spec(
        code["digest"],
        args={"epochs": 30},
        data={"dataset": "iris"},
        fit={"epochs": 30},
        search={
            "algorithm": "grid",
            "objective": {"metric": "accuracy", "direction": "max"},
            "max_trials": 2,
            "space": [{"name": "rate", "kind": "choice", "values": [0.0, 0.2]}],
        },
        after={"register": {"model": "of-a-script"}},
    )
    job = flow_yard.until_completed(flow_yard.submit(body))
    assert job["results"]["best_trial"]["values"] == {"rate": 0.2}
    trials = flow_yard.ada.get(f"/jobs/{job['id']}/trials")["items"]
    assert {trial["state"] for trial in trials} == {"completed"}
    # Each trial has its curve and its files.
    curve = flow_yard.ada.get(f"/jobs/{job['id']}/metrics", names="accuracy", trial=1)["series"]
    assert [len(series["points"]) for series in curve] == [30]
    names = {each["name"] for each in flow_yard.ada.get(f"/jobs/{job['id']}/artifacts")["items"]}
    assert {"trial-1/model.keras", "trial-2/notes/run.txt"} <= names
    (version,) = job["results"]["versions"]
    flow_yard.promote("of-a-script", version["number"])
    served, answers = flow_yard.predict("of-a-script", [[5.1, 3.5, 1.4, 0.2]])
    assert served == version["number"]
    assert answers[0].index(max(answers[0])) == 0


def test_a_script_that_fails_names_its_error_and_one_that_prints_too_much_is_ended(
    flow_yard: RunningYard,
) -> None:
    broken = upload(flow_yard, "def main():\n    raise ValueError('no such column')\nmain()\n")
    job = flow_yard.until_final(flow_yard.submit(spec(broken["digest"])))
    assert (job["state"], job["error"]["code"]) == ("failed", "script_failed")
    assert job["error"]["message"].endswith("ValueError: no such column")
    assert "workers" not in job["error"]["traceback"]
    loud = upload(flow_yard, "for _ in range(10**6): print('x' * 1000)\n")
    job = flow_yard.until_final(flow_yard.submit(spec(loud["digest"])))
    assert (job["state"], job["error"]["code"]) == ("failed", "too_much_output")
