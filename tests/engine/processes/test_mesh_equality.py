"""Trainings on 8 simulated devices have each value of those on one: metrics, losses, ends and results."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from jobs.spec.sections import measures, schedules
from jobs.spec.sections.optimizers import ARGUMENTS
from jobs.spec.templates import TEMPLATES
from tests.engine.processes.mesh_cases import CASES
from tests.engine.processes.test_mesh import SAME

MESHES = ("2x4", "8x1")
OTHERS = {"text_transformer", "sequence"}
"""Templates that `test_mesh` trains."""

Runs = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("equal")
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.processes.mesh_equality_child", str(folder)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    cases = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    return {case["case"]: case["runs"] for case in cases}


def flat(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each number and text in a run with its place."""
    if isinstance(value, dict | list):
        parts: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in parts:
            yield from flat(part, f"{place}/{key}")
    else:
        yield place, value


def values_of(runs: Runs, name: str) -> set[str]:
    """Return the names of the values in the epochs of a case."""
    return {key.removeprefix("val_") for epoch in runs[name]["one"]["epochs"] for key in epoch}


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", CASES)
def test_each_value_of_each_epoch_and_of_the_result_is_that_of_one_device(
    runs: Runs, name: str, mesh: str
) -> None:
    assert runs[name]["one"]["failures"] == runs[name][mesh]["failures"] == []
    one, several = dict(flat(runs[name]["one"])), dict(flat(runs[name][mesh]))
    assert any(place.endswith("val_loss") for place in one)
    assert several == pytest.approx(one, rel=SAME, abs=1e-7)


def test_the_cases_use_every_metric_loss_optimizer_schedule_and_template(runs: Runs) -> None:
    fits = [case.fit for case in CASES.values()]
    assert set[str]().union(*(values_of(runs, name) for name in CASES)) >= set(measures.METRICS)
    results = [run["one"]["result"] for run in runs.values() if "metrics" in run["one"]["result"]]
    evaluated = set[str]().union(*(result["metrics"]["test"] for result in results))
    assert evaluated >= set(measures.EVALUATION_METRICS)
    assert {fit["loss"] for fit in fits if "loss" in fit} == set(measures.LOSSES)
    assert {fit["optimizer"] for fit in fits if "optimizer" in fit} == set(ARGUMENTS)
    assert {fit["schedule"]["kind"] for fit in fits if "schedule" in fit} == set(schedules.KINDS)
    trained = {case.template for case in CASES.values() if not case.code} | OTHERS
    # KerasTuner's other hypermodel has 20 million weights and more.
    expected = {name for name, info in TEMPLATES.items() if "/mesh" not in info.unused} - {"HyperResNet"}
    assert trained == expected


@pytest.mark.parametrize("name", ["early stopping", "subclass stops early", "own fit stops early"])
def test_early_stopping_has_ended_these_trainings(runs: Runs, name: str) -> None:
    assert 1 < len(runs[name]["one"]["epochs"]) < CASES[name].fit["epochs"]


@pytest.mark.parametrize("name", ["pruning", "code with weights", "own fit is pruned"])
def test_a_pruner_has_ended_the_second_trial(runs: Runs, name: str) -> None:
    first, second = runs[name]["one"]["result"]["trials"]
    assert first["verdict"] is None
    assert second["verdict"]["epoch"] < CASES[name].fit["epochs"]


def test_a_plateau_has_reduced_the_learning_rate(runs: Runs) -> None:
    rates = [epoch["lr"] for epoch in runs["plateau"]["one"]["epochs"] if "lr" in epoch]
    assert min(rates) < max(rates)
