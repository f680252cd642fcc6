"""Evaluates the same code, rows and values with KerasTuner's own classes."""

import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import keras
import keras_tuner
import numpy as np

from jobs.messages.task import DatasetFile
from jobs.spec.experiment import ExperimentSpec
from workers.engine.data.dataset import load_dataset

DRAWN = 300
"""Builds with drawn values, so that values that are needed together occur."""
Values = dict[str, Any]


class NoModel:
    """Takes the calls of a build that is done only for its declarations."""

    def __getattr__(self, _: str) -> Any:
        return NoModel()

    def __call__(self, *_: Any, **__: Any) -> Any:
        return NoModel()

    def __iter__(self) -> Any:
        return iter(())

    def __gt__(self, _: object) -> bool:
        return False


def executed(text: str, entry: str) -> tuple[dict[str, Any], Any]:
    """Execute pasted code; return its names, and the entry as KerasTuner takes it."""
    scope: dict[str, Any] = {"__name__": "pasted"}
    exec(compile(text, "pasted.py", "exec"), scope)
    found = scope[entry]
    return scope, found() if isinstance(found, type) else found


def space(text: str, entry: str) -> dict[str, Any]:
    """Return the rows that KerasTuner knows by name after many drawn builds."""
    scope, hypermodel = executed(text, entry)
    for name, value in [*scope.items()]:
        is_module = isinstance(value, ModuleType) and value.__name__.startswith(("keras.", "keras"))
        if is_module and not value.__name__.startswith("keras_tuner"):
            scope[name] = NoModel()
    known = keras_tuner.HyperParameters()
    generator = random.Random(0)
    for _ in range(DRAWN):
        drawn = known.copy()
        drawn.values = {
            row.name: row.random_sample(generator.randrange(10**9))
            for row in drawn.space
            if drawn.is_active(row)
        }
        # A trial that fails has declared its hyperparameters before.
        with suppress(Exception):
            build = hypermodel.build if hasattr(hypermodel, "build") else hypermodel
            model = build(drawn)
            if hasattr(hypermodel, "fit") and type(hypermodel).fit is not keras_tuner.HyperModel.fit:
                rows = np.zeros((2, 4, 4, 1)), np.zeros(2)
                hypermodel.fit(drawn, NoModel() if model is None else model, *rows, validation_data=rows)
        known.merge(drawn, overwrite=False)
    return {row["config"]["name"]: row for row in known.get_config()["space"]}


def described(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the properties of each hyperparameter by its name, with the values that KerasTuner implies."""
    found = keras_tuner.HyperParameters.from_config({"space": [*rows], "values": {}})
    return {row.name: _properties(row) for row in found.space}


def _properties(row: Any) -> dict[str, Any]:
    kind = type(row).__name__
    step = getattr(row, "step", None)
    if kind == "Int" and row.sampling in (None, "linear"):
        step = step or 1
    # Numbers have their values one after another.
    values = list(row.values) if kind in ("Choice", "Boolean") and hasattr(row, "values") else None
    return {
        "type": kind,
        "values": values,
        "default": row.default,
        "step": step,
        "sampling": getattr(row, "sampling", None) or "linear",
        "conditions": [condition.get_config() for condition in row.conditions],
        **{name: getattr(row, name, None) for name in ("min_value", "max_value", "value")},
    }


def drawn(rows: dict[str, Any], seed: int) -> Values:
    """Return a configuration that KerasTuner draws."""
    found = keras_tuner.HyperParameters.from_config({"space": [*rows.values()], "values": {}})
    found.values = {}
    for place, row in enumerate(found.space):
        if found.is_active(row):
            found.values[row.name] = row.random_sample(seed * 1000 + place)
    return dict(found.values)


def parts_of(file: DatasetFile, spec: ExperimentSpec, *, one_hot: int, as_numbers: bool) -> list[Any]:
    """Return the rows and the targets of training and validation."""
    dataset = load_dataset(file, spec.data)
    parts = []
    for rows in (dataset.parts.train, dataset.parts.validation):
        x, y = np.asarray(dataset.x[rows]), np.asarray(dataset.y[rows])
        y = np.eye(one_hot)[y] if one_hot else y
        parts.append((x, y.reshape(len(y), -1) if as_numbers else y))
    return parts


def scores(
    folder: Path, text: str, entry: str, values: Values, parts: Sequence[Any], objective: dict[str, str],
    epochs: int, seeds: Sequence[int], batch_size: int | None,
) -> list[float]:  # fmt: skip
    """Return the score of each execution: a trial of KerasTuner's random search with these values."""
    _, hypermodel = executed(text, entry)
    fixed = keras_tuner.HyperParameters()
    for name, value in values.items():
        fixed.Fixed(name, value)
    metric = objective["metric"]
    unnamed = {"val_objective": None, "val_metric_a": "metric_a", "val_my_metric": "my_metric"}
    metric = unnamed.get(metric, metric)
    goal = None if metric is None else keras_tuner.Objective(metric, objective["direction"])
    fitting: Values = {"epochs": epochs, "validation_data": parts[1], "verbose": 0}
    if batch_size is not None:
        fitting["batch_size"] = batch_size
    found = []
    for seed in seeds:
        keras.utils.set_random_seed(500 + seed)
        tuner = keras_tuner.RandomSearch(
            hypermodel, objective=goal, max_trials=1, hyperparameters=fixed, tune_new_entries=False,
            directory=folder, project_name=f"seed-{seed}", overwrite=True, max_consecutive_failed_trials=1,
        )  # fmt: skip
        tuner.search(*parts[0], **fitting)
        found.append(float(tuner.oracle.get_best_trials()[0].score))
    return found
