"""The rows for hyperparameters, objectives, mesh layout and precision overrides, and default ranges."""

from typing import Any, get_args

from jobs.spec.sections.precision import UNSUPPORTED_POLICIES, Policy
from webapp.forms.experiments.experiment.description import Cell, Field, Option, RowKind


def _default(tag: str, **more: Any) -> Field:
    return Field(
        "default", "Default", "The first trial has it.", spec=f"/search/space/*:{tag}/default", **more
    )


RANGE = Cell("range", "range", "16 … 128 step 16", ("min", "max", "step", "sampling"))
SPACE = (
    RowKind("int", "whole number", RANGE, (_default("int"),)),
    RowKind("float", "number", RANGE._replace(placeholder="log 1e-4 … 0.1"), (_default("float"),)),
    RowKind(
        "choice",
        "one of a list",
        Cell("values", "values", "16, 32, 64", ("values",)),
        (_default("choice", kind="value"),),
    ),
    RowKind(
        "boolean",
        "yes or no",
        None,
        (_default("boolean", kind="select", options=(Option("true", "yes"), Option("false", "no"))),),
    ),
    RowKind("fixed", "always the same", Cell("value", "value", "64", ("value",))),
)
SPACE_COVERS = ("name", "kind", "when")
"""Properties that the row itself edits, for every kind."""

LAYOUT = (
    Field("match", "Variables whose path matches", spec="/mesh/layout/*/match", wide=True),
    Field("axes", "Axis of each dimension", kind="axes", spec="/mesh/layout/*/axes"),
)
OBJECTIVES = (
    Field("metric", "Objective", spec="/search/objectives/*/metric", kind="measure"),
    Field(
        "direction",
        "Direction",
        spec="/search/objectives/*/direction",
        options=(Option('"max"', "the higher the better"), Option('"min"', "the lower the better")),
    ),
)
POLICIES = tuple(
    Option(f'"{policy}"', policy.replace("_", " "))
    for policy in get_args(Policy)
    if policy not in UNSUPPORTED_POLICIES
)
OVERRIDES = (
    Field("match", "Layers whose name matches", spec="/precision/overrides/*/match", wide=True),
    Field("policy", "Policy", spec="/precision/overrides/*/policy", options=POLICIES),
)

FIT_RANGES: dict[str, dict[str, Any]] = {
    "learning_rate": {"kind": "float", "min": 1e-4, "max": 1e-1, "sampling": "log"},
    "optimizer": {"kind": "choice", "values": ["adam", "rmsprop", "sgd"]},
    "batch_size": {"kind": "choice", "values": [32, 64, 128]},
    "clipnorm": {"kind": "float", "min": 0.1, "max": 10.0, "sampling": "log"},
    "epochs": {"kind": "choice", "values": [20, 50, 100]},
    "steps_per_execution": {"kind": "choice", "values": [1, 4, 16]},
    "seed": {"kind": "int", "min": 0, "max": 9},
    "shuffle": {"kind": "boolean"},
    "class_weights": {"kind": "choice", "values": ["none", "balanced"]},
    "clipvalue": {"kind": "float", "min": 0.01, "max": 1.0, "sampling": "log"},
    "global_clipnorm": {"kind": "float", "min": 0.1, "max": 10.0, "sampling": "log"},
    "ema/momentum": {"kind": "choice", "values": [0.9, 0.99, 0.999]},
    "ema/overwrite_frequency": {"kind": "choice", "values": [10, 100, 1000]},
    "schedule/kind": {"kind": "choice", "values": ["constant", "cosine", "warmup_cosine"]},
    "schedule/epochs": {"kind": "choice", "values": [20, 50, 100]},
    "schedule/warmup_epochs": {"kind": "choice", "values": [1, 3, 5]},
    "schedule/first_epochs": {"kind": "choice", "values": [5, 10, 20]},
    "schedule/t_mul": {"kind": "choice", "values": [1.0, 2.0]},
    "schedule/m_mul": {"kind": "float", "min": 0.5, "max": 1.0, "step": 0.1},
    "schedule/alpha": {"kind": "float", "min": 0.0, "max": 0.2, "step": 0.05},
    "schedule/factor": {"kind": "float", "min": 0.1, "max": 0.9, "step": 0.1},
    "schedule/every": {"kind": "choice", "values": [5, 10, 30]},
    "schedule/power": {"kind": "choice", "values": [0.5, 1.0, 2.0]},
    "schedule/patience": {"kind": "choice", "values": [2, 3, 5]},
    "schedule/min_delta": {"kind": "float", "min": 1e-5, "max": 1e-2, "sampling": "log"},
    "schedule/cooldown": {"kind": "int", "min": 0, "max": 5},
    "schedule/min_learning_rate": {"kind": "float", "min": 1e-7, "max": 1e-4, "sampling": "log"},
    "augmentation/flip": {"kind": "choice", "values": ["none", "horizontal", "vertical", "both"]},
    "augmentation/rotation": {"kind": "float", "min": 0.0, "max": 0.1, "step": 0.02},
    "augmentation/zoom": {"kind": "float", "min": 0.0, "max": 0.3, "step": 0.1},
    "augmentation/translation": {"kind": "float", "min": 0.0, "max": 0.2, "step": 0.05},
    "augmentation/contrast": {"kind": "float", "min": 0.0, "max": 0.5, "step": 0.1},
    "augmentation/brightness": {"kind": "float", "min": 0.0, "max": 0.5, "step": 0.1},
    "optimizer_args/weight_decay": {"kind": "float", "min": 1e-6, "max": 1e-1, "sampling": "log"},
    "optimizer_args/momentum": {"kind": "float", "min": 0.0, "max": 0.95, "step": 0.05},
    "optimizer_args/nesterov": {"kind": "boolean"},
    "optimizer_args/beta_1": {"kind": "float", "min": 0.8, "max": 0.99},
    "optimizer_args/beta_2": {"kind": "choice", "values": [0.9, 0.99, 0.999]},
    "optimizer_args/epsilon": {"kind": "float", "min": 1e-8, "max": 1e-3, "sampling": "log"},
    "optimizer_args/amsgrad": {"kind": "boolean"},
    "optimizer_args/rho": {"kind": "choice", "values": [0.9, 0.95, 0.99]},
    "optimizer_args/centered": {"kind": "boolean"},
    "optimizer_args/initial_accumulator_value": {"kind": "float", "min": 0.01, "max": 1.0, "sampling": "log"},
    "optimizer_args/gradient_accumulation_steps": {"kind": "choice", "values": [2, 4, 8]},
}
"""The initial range of each searchable field of the fit."""
