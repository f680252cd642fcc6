"""Trainings on 8 simulated devices have each value of those on one: metrics, losses, ends and results."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from jobs.spec.sections import measures, schedules
from jobs.spec.sections.optimizers import ARGUMENTS
from jobs.spec.templates import TEMPLATES
from tests.engine.processes.mesh_cases import CASES
from tests.engine.processes.test_mesh import SAME

MESHES = ("2x4", "8x1")
OTHERS = {"text_transformer", "sequence"}
"""Templates that `test_mesh` trains."""


class Runs:
    """The runs of each case on each mesh, as a process in the background ends them."""

    def __init__(self, lines: IO[str], errors: Path) -> None:
        self._lines, self._errors = lines, errors
        self._read: dict[str, dict[str, Any]] = {}

    def __getitem__(self, name: str) -> dict[str, Any]:
        """Return the runs of a case, by mesh. Waits for it: each test has its own time."""
        while name not in self._read:
            line = self._lines.readline()
            assert line, self._errors.read_text()[-3000:]
            if line.startswith("{"):
                case = json.loads(line)
                self._read[case["case"]] = case["runs"]
        return self._read[name]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    folder = tmp_path_factory.mktemp("equal")
    command = [sys.executable, "-m", "tests.engine.processes.mesh_equality_child", str(folder)]
    errors = folder / "errors"
    with (
        errors.open("w") as opened,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=opened, text=True) as child,
    ):
        assert child.stdout is not None
        yield Runs(child.stdout, errors)
        child.kill()


def flat(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each number and text in a run with its place."""
    if isinstance(value, dict | list):
        parts: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in parts:
            yield from flat(part, f"{place}/{key}")
    else:
        yield place, value


def numbers_in(values: dict[str, Any]) -> dict[str, float]:
    return {place: value for place, value in values.items() if isinstance(value, float)}


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
    assert several.keys() == one.keys()
    assert numbers_in(several) == pytest.approx(numbers_in(one), rel=SAME, abs=1e-7)
    assert {place: value for place, value in several.items() if not isinstance(value, float)} == {
        place: value for place, value in one.items() if not isinstance(value, float)
    }


def test_the_cases_use_every_metric_loss_optimizer_schedule_and_template(runs: Runs) -> None:
    fits = [case.fit for case in CASES.values()]
    assert set[str]().union(*(values_of(runs, name) for name in CASES)) >= set(measures.METRICS)
    results = [runs[name]["one"]["result"] for name in CASES]
    evaluated = set[str]().union(*(result["metrics"]["test"] for result in results if "metrics" in result))
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
