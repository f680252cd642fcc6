"""The chief's messages equal KerasTuner's own, and a search space survives the conversion."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from jobs.spec.external_search import ExternalSearch
from jobs.spec.formats import keras_tuner
from jobs.spec.formats.reading import Item
from workers.chief import conversion, protocol

THEIRS = """
import json
import keras_tuner as kt
from keras_tuner.src.protos import get_proto, get_service

def fields(message, prefix, found):
    name = prefix + message.name
    found[name] = {
        f.name: [f.number, f.type, f.is_repeated, getattr(f.message_type or f.enum_type, "name", None)]
        for f in message.fields
    }
    for inner in message.nested_types:
        fields(inner, name + ".", found)

found = {}
for module in (get_proto(), get_service()):
    for message in module.DESCRIPTOR.message_types_by_name.values():
        fields(message, "", found)
hp = kt.HyperParameters()
hp.Int("units", 8, 64, step=8, default=16)
hp.Float("rate", 1e-4, 1e-1, sampling="log")
hp.Boolean("norm", default=True)
hp.Fixed("seed", 3)
hp.Choice("width", [0.5, 1.0])
if hp.Choice("kind", ["a", "b"]) == "a":
    with hp.conditional_scope("kind", ["a"]):
        hp.Int("alpha", 1, 3)
        hp.Choice("leak", ["x", "y"], default="y")
print(json.dumps({
    "fields": found,
    "enums": {n: list(e.values_by_name) for n, e in get_proto().DESCRIPTOR.enum_types_by_name.items()},
    "calls": [m.name for m in get_service().DESCRIPTOR.services_by_name["Oracle"].methods],
    "space": hp.to_proto().SerializeToString().hex(),
    "config": hp.get_config(),
}))
"""


@pytest.fixture(scope="module")
def theirs() -> dict[str, Any]:
    environment = os.environ | {"KERAS_BACKEND": "jax"}
    done = subprocess.run(
        [sys.executable, "-c", THEIRS], env=environment, capture_output=True, text=True, check=True
    )
    body: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return body


def fields(descriptor: Any) -> dict[str, list[Any]]:
    return {
        f.name: [f.number, f.type, f.is_repeated, getattr(f.message_type or f.enum_type, "name", None)]
        for f in descriptor.fields
    }


def test_every_field_of_every_message_equals_keras_tuners(theirs: dict[str, Any]) -> None:
    ours = {name: fields(protocol.message(name).DESCRIPTOR) for name in theirs["fields"]}
    assert ours == theirs["fields"]


def test_states_and_calls_equal_keras_tuners(theirs: dict[str, Any]) -> None:
    for name, members in theirs["enums"].items():
        assert [protocol.member_of(name, number) for number in range(len(members))] == members
    assert set(protocol.CALLS) == set(theirs["calls"])


def test_a_space_sent_by_a_script_equals_its_file_format(theirs: dict[str, Any]) -> None:
    sent = conversion.HyperParameters.FromString(bytes.fromhex(theirs["space"]))
    by_message = keras_tuner.read(Item(conversion.config(sent), "")).search["space"]
    by_file = keras_tuner.read(Item(theirs["config"], "")).search["space"]
    assert sorted(by_message, key=str) == sorted(by_file, key=str)


def test_a_converted_trial_converts_back_unchanged(theirs: dict[str, Any]) -> None:
    read = keras_tuner.read(Item(theirs["config"], "")).search["space"]
    space = ExternalSearch.model_validate({"space": read}).space
    values: dict[str, Any] = {
        "units": 16,
        "rate": 0.01,
        "norm": True,
        "seed": 3,
        "width": 1,
        "kind": "a",
        "alpha": 2,
        "leak": "y",
    }
    message = conversion.hyperparameters(space, values)
    assert conversion.values(message) == values
    assert isinstance(conversion.values(message)["width"], float)  # JSON had lost the `.0`
    again = keras_tuner.read(Item(conversion.config(message), "")).search["space"]
    assert sorted(again, key=str) == sorted(read, key=str)
