"""Search spaces from other tools are imported without loss, or rejected with the location and a reason."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from jobs.spec.formats import keras_tuner
from jobs.spec.formats.importing import read
from jobs.spec.space.search_space import Space

FILES = Path(__file__).parent / "files"
Json = dict[str, Any]
LOG = {"sampling": "log"}
RATE = {"name": "learning_rate", "kind": "float", "min": 1e-4, "max": 0.1, **LOG}
UNITS = {"name": "units", "kind": "int", "min": 16, "max": 64, "step": 16}
DROPOUT = {"name": "dropout", "kind": "float", "min": 0.0, "max": 0.5, "step": 0.1}
OPTIMIZER = {"name": "optimizer", "kind": "choice", "values": ["sgd", "adam"]}
BATCH = {"name": "batch_size", "kind": "choice", "values": [32, 64, 128]}
LAYERS = {"name": "layers", "kind": "int", "min": 1, "max": 3}


def whole(file: str) -> Json:
    return read((FILES / file).read_text()).search


def test_a_vertex_study_with_nested_conditions_is_imported() -> None:
    search = whole("vertex.yaml")
    assert search.pop("space") == [
        {**OPTIMIZER, "default": "adam"},
        {"name": "momentum", "kind": "float", "min": 0.5, "max": 0.99, "sampling": "reverse_log",
         "when": {"name": "optimizer", "in": ["sgd"]}},
        {**LAYERS, "when": {"name": "optimizer", "in": ["sgd", "adam"]}},
        {"name": "dropout", "kind": "choice", "values": [0.0, 0.25, 0.5],
         "when": {"name": "layers", "in": [2, 3]}},
        {**RATE, "default": 0.001},
    ]  # fmt: skip
    assert search == {
        "objective": {"metric": "val_accuracy", "direction": "max"},
        "algorithm": "random",
        "max_trials": 40,
        "parallel_trials": 4,
    }


def test_a_katib_experiment_is_imported() -> None:
    search = whole("katib.yaml")
    assert search.pop("space") == [RATE, DROPOUT, {**LAYERS, "max": 4}, UNITS, BATCH, OPTIMIZER]
    assert search == {
        "objective": {"metric": "val_loss", "direction": "min"},
        "algorithm": "bayesian",
        "seed": 7,
        "max_trials": 12,
        "parallel_trials": 3,
    }


def test_a_wandb_sweep_is_imported() -> None:
    imported = read((FILES / "wandb.yaml").read_text())
    space = {row["name"]: row for row in imported.search["space"]}
    assert space["learning_rate"] == RATE
    assert space["l2"] == {"name": "l2", "kind": "float", **LOG} | {
        "min": pytest.approx(1.2341e-4, rel=1e-4),
        "max": pytest.approx(0.13534, rel=1e-4),
    }
    assert space["momentum"] == {"name": "momentum", "kind": "float", "min": 0.1, "max": 0.9, **LOG}
    assert [space["units"], space["layers"], space["batch_size"]] == [UNITS, LAYERS, BATCH]
    assert space["scale"]["values"] == [1.0, 0.5, 0.25]
    assert space["activation"] == {"name": "activation", "kind": "fixed", "value": "relu"}
    assert space["block/norm"] == {"name": "block/norm", "kind": "choice", "values": [True, False]}
    assert imported.search["algorithm"] == "bayesian"
    assert imported.search["max_trials"] == 30
    assert any("program" in note for note in imported.notes)
    assert any("equally likely" in note for note in imported.notes)


def test_optuna_distributions_are_imported() -> None:
    assert whole("optuna.json") == {
        "space": [
            RATE, DROPOUT, UNITS, LAYERS,
            {"name": "filters", "kind": "int", "min": 1, "max": 64, **LOG},
            OPTIMIZER,
            {"name": "momentum", "kind": "float", "min": 0.5, "max": 0.9, "step": 0.1},
            {"name": "l2", "kind": "float", "min": 1e-6, "max": 0.01, **LOG},
            {"name": "kernel", "kind": "int", "min": 3, "max": 7, "step": 2},
        ]
    }  # fmt: skip


def test_distributions_written_by_optuna_are_imported() -> None:
    optuna = pytest.importorskip("optuna")
    d = optuna.distributions
    written = {
        "learning_rate": d.distribution_to_json(d.FloatDistribution(1e-4, 0.1, log=True)),
        "units": d.distribution_to_json(d.IntDistribution(16, 64, step=16)),
        "optimizer": json.loads(d.distribution_to_json(d.CategoricalDistribution(["sgd", "adam"]))),
    }
    assert read(json.dumps(written)).search["space"] == [RATE, UNITS, OPTIMIZER]


def test_exported_keras_tuner_spaces_are_imported_unchanged() -> None:
    imported = read((FILES / "keras_tuner.json").read_text())
    assert imported.notes == ()
    space = TypeAdapter(Space).validate_python(imported.search["space"])
    assert [parameter.name for parameter in space][2] == "block/units"
    assert len(space[3].conditions()) == 2
    assert read(json.dumps(keras_tuner.write(space))).search == imported.search


VERTEX = {"parameterId": "x", "doubleValueSpec": {"minValue": 0, "maxValue": 1}}
KATIB: dict[str, Any] = {"name": "x", "parameterType": "double", "feasibleSpace": {"min": "0.1", "max": "1"}}


def vertex(parameter: Json = VERTEX, **study: Any) -> Json:
    return {"metrics": [{"metricId": "val_loss", "goal": "MINIMIZE"}], "parameters": [parameter], **study}


def katib(feasible: Json | None = None, kind: str = "double", **spec: Any) -> Json:
    row = {**KATIB, "parameterType": kind, "feasibleSpace": {**KATIB["feasibleSpace"], **(feasible or {})}}
    return {"kind": "Experiment", "spec": {"parameters": [row], **spec}}


def wandb(parameter: Any = None, **sweep: Any) -> Json:
    return {"method": "random", "parameters": {"x": parameter or {"values": [1, 2]}}, **sweep}


def optuna(name: str = "FloatDistribution", **attributes: Any) -> Json:
    return {"x": {"name": name, "attributes": {"low": 0.1, "high": 1.0, **attributes}}}
