"""Specs of experiments, and the world with rows that are made once for each module."""

from copy import deepcopy
from typing import Any

import pytest

from tests.module_rows import ModuleRows
from tests.world import World, make_world

SPEC: dict[str, Any] = {
    "version": 1,
    "data": {"dataset": "digits"},
    "model": {"kind": "template", "template": "mlp", "args": {"units": 32}},
    "fit": {"epochs": 5, "early_stopping": {"patience": 2}},
}
SEARCH: dict[str, Any] = {
    "algorithm": "random",
    "objective": {"metric": "val_accuracy", "direction": "max"},
    "max_trials": 4,
    "executions_per_trial": 2,
    "space": [{"name": "units", "kind": "int", "min": 16, "max": 64, "step": 16}],
}


@pytest.fixture(scope="module")
def module_world(module_rows: ModuleRows) -> World:
    return module_rows(make_world)


@pytest.fixture
def world(module_world: World, db: None) -> World:
    return deepcopy(module_world)


@pytest.fixture
def spec() -> dict[str, Any]:
    return {**SPEC}


@pytest.fixture
def searching() -> dict[str, Any]:
    return {**SPEC, "search": SEARCH}
