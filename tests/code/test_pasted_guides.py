"""A model of KerasTuner's guides goes from its upload over its dry build to the plan of its search."""

import os
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from jobs.spec.checks.dry_build import BuiltModel
from tests import factories
from tests.code.dry_builds import ask, created, finish, spec_of, stored
from tests.jobs.yard import PretendWorker
from tests.markup import text_of
from tests.people import People, browser_of

os.environ.setdefault("KERAS_BACKEND", "jax")

CONDITIONAL = """
import keras
from keras import layers


def build_model(hp):
    model = keras.Sequential()
    model_type = hp.Choice("model_type", ["mlp", "cnn"])
    with hp.conditional_scope("model_type", ["mlp"]):
        if model_type == "mlp":
            model.add(layers.Flatten())
            for i in range(hp.Int("mlp_num_layers", 1, 3)):
                units = hp.Int(f"mlp_units_{i}", min_value=32, max_value=128, step=32)
                model.add(layers.Dense(units, activation="relu"))
    with hp.conditional_scope("model_type", ["cnn"]):
        if model_type == "cnn":
            model.add(layers.Reshape((2, 1)))
            for i in range(hp.Int("cnn_num_layers", 1, 3)):
                units = hp.Int(f"cnn_units_{i}", min_value=32, max_value=128, step=32)
                model.add(layers.Conv1D(units, 2, padding="same", activation="relu"))
            model.add(layers.Flatten())
    model.add(layers.Dense(3, activation="softmax"))
    model.compile(loss="sparse_categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
    return model
"""
OPTIMIZER = """
import keras
from keras import layers


def build_model(hp):
    model = keras.Sequential([layers.Dense(3, activation="softmax")])
    optimizer = hp.Choice("optimizer", ["sgd", "rmsprop", "adam"])
    if optimizer == "adam":
        if hp.Boolean("with_decay"):
            if hp.Float("decay", 0.0, 1.0, step=0.1) > 0.55:
                hp.Int("decay_steps", 100, 10_000, sampling="log")
    model.compile(loss="sparse_categorical_crossentropy", optimizer=optimizer, metrics=["accuracy"])
    return model
"""
OWN_FIT = """
import keras
import keras_tuner
from keras import layers


class build_model(keras_tuner.HyperModel):
    def build(self, hp):
        model = keras.Sequential([layers.Dense(hp.Choice("units", [8, 16, 32])), layers.Dense(3, "softmax")])
        model.compile(loss="sparse_categorical_crossentropy", metrics=["accuracy"])
        return model

    def fit(self, hp, model, x, y, **kwargs):
        if hp.Choice("augmentation", ["none", "noise", "mixup", "cutout"]) == "mixup":
            hp.Float("mixing", 0.1, 0.9)
        return model.fit(x, y, shuffle=hp.Boolean("shuffle"), **kwargs)
"""
GUIDES = {
    "conditional scopes": (
        CONDITIONAL,
        [
            *("cnn_num_layers", "cnn_units_0", "cnn_units_1", "cnn_units_2"),
            *("mlp_num_layers", "mlp_units_0", "mlp_units_1", "mlp_units_2", "model_type"),
        ],
    ),
    "a chain behind an optimizer": (OPTIMIZER, ["decay", "decay_steps", "optimizer", "with_decay"]),
    "a middle value in fit": (OWN_FIT, ["augmentation", "mixing", "shuffle", "units"]),
}


@pytest.fixture
def api(people: People) -> Client:
    factories.make_dataset("flowers", project=people.project, by=people.member)
    return browser_of(people.trainer)


def sandboxed_worker() -> PretendWorker:
    worker = PretendWorker(slots=1)
    worker.row.info = {"sandbox": [{"level": "landlock", "offered": True}]}
    worker.row.save(update_fields=["info"])
    return worker


def build_as_worker(folder: Path, text: str) -> BuiltModel:
    """Do the dry build as a worker does, in this process."""
    from jobs.spec.checks.dry_build import DataShape
    from tests.engine.models.test_own_code import dry_built

    return dry_built(
        folder, text, shape=DataShape(kind="vector", task="multiclass", input_shape=(2,), outputs=3)
    )


@pytest.mark.parametrize("guide", GUIDES)
def test_a_pasted_guide_has_its_whole_space_and_shows_its_builds(
    api: Client, tmp_path: Path, guide: str
) -> None:
    text, names = GUIDES[guide]
    code = stored(api, text)
    job = ask(api, code).json()["job"]
    built = build_as_worker(tmp_path, text)
    assert sorted(row.name for row in built.space) == names
    # Its lease would end during a long build.
    finish(sandboxed_worker(), built)
    answer: dict[str, Any] = ask(api, code).json()["built"]
    assert (answer["builds"], answer["most_builds"]) == (built.builds, 150)
    assert 3 <= built.builds <= 150 and not built.notes
    assert f"{built.builds} with different values, at most 150" in text_of(api.get(f"/jobs/{job}"))
    spec = spec_of(code, objective={"metric": "val_accuracy", "direction": "max"})
    assert created(api, spec).status_code == 201
    body = {"project": "yard", "spec": spec}
    checked = api.post("/api/v1/experiments/validate", body, content_type="application/json").json()
    assert checked["valid"], checked
    assert checked["plan"]["trials"] == 3
