"""Rows of the search space, of the mesh's layout and of precision overrides; and rows to begin with."""

from typing import Any

from webapp.forms.experiment.description import Field, Option, RowKind

SAMPLING = (
    Option('"linear"', "linear"),
    Option('"log"', "log"),
    Option('"reverse_log"', "reverse log"),
)


def _at(tag: str, name: str, label: str, **more: Any) -> Field:
    return Field(name, label, spec=f"/search/space/*:{tag}/{name}", **more)


def _range(tag: str) -> tuple[Field, ...]:
    return (
        _at(tag, "min", "From"),
        _at(tag, "max", "To"),
        _at(tag, "step", "Step", help="A factor under log."),
        _at(tag, "sampling", "Sampling", options=SAMPLING),
        _at(tag, "default", "Default"),
    )


SPACE = (
    RowKind("int", "whole number", _range("int")),
    RowKind("float", "number", _range("float")),
    RowKind(
        "choice",
        "one of a list",
        (
            _at("choice", "values", "Values", kind="values", help="separated by commas", wide=True),
            _at("choice", "default", "Default", kind="value"),
        ),
    ),
    RowKind(
        "boolean",
        "yes or no",
        (
            _at(
                "boolean",
                "default",
                "Default",
                kind="select",
                options=(Option("true", "yes"), Option("false", "no")),
            ),
        ),
    ),
    RowKind("fixed", "always the same", (_at("fixed", "value", "Value", kind="value"),)),
)
SPACE_COVERS = ("name", "kind", "when")
"""What the row itself edits, for every kind."""

LAYOUT = (
    Field("match", "Variables whose path matches", spec="/mesh/layout/*/match", wide=True),
    Field("axes", "Axis of each dimension", kind="axes", spec="/mesh/layout/*/axes"),
)
OVERRIDES = (
    Field("match", "Layers whose name matches", spec="/precision/overrides/*/match", wide=True),
    Field("policy", "Policy", spec="/precision/overrides/*/policy"),
)

BEGINNINGS: dict[str, dict[str, Any]] = {
    "units": {"kind": "int", "min": 16, "max": 128, "step": 16},
    "layers": {"kind": "int", "min": 1, "max": 3},
    "filters": {"kind": "choice", "values": [16, 32, 64]},
    "kernel": {"kind": "choice", "values": [3, 5]},
    "dropout": {"kind": "float", "min": 0.0, "max": 0.5, "step": 0.1},
    "activation": {"kind": "choice", "values": ["relu", "gelu", "silu", "tanh"]},
    "batch_norm": {"kind": "boolean"},
    "l2": {"kind": "float", "min": 1e-6, "max": 1e-1, "sampling": "log"},
    "learning_rate": {"kind": "float", "min": 1e-4, "max": 1e-1, "sampling": "log"},
    "optimizer": {"kind": "choice", "values": ["adam", "rmsprop", "sgd"]},
    "batch_size": {"kind": "choice", "values": [32, 64, 128]},
    "clipnorm": {"kind": "float", "min": 0.1, "max": 10.0, "sampling": "log"},
    "epochs": {"kind": "choice", "values": [20, 50, 100]},
    "steps_per_execution": {"kind": "choice", "values": [1, 4, 16]},
    "seed": {"kind": "int", "min": 0, "max": 9},
    "shuffle": {"kind": "boolean"},
    "class_weights": {"kind": "fixed", "value": "balanced"},
}
"""A sensible range for each hyperparameter that can be named; a new row begins with it."""
