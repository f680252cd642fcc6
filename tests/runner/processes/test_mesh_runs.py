"""Trainings on a mesh in real runners, which store their compiled programs for later ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.runner.harness import runner
from tests.runner.processes.test_runner import events_of
from tests.runner.tasks import profiled, train_task, trial_task

MESH = {
    "shape": [2, 2],
    "axis_names": ["data", "model"],
    "simulate": 4,
    "layout": [{"match": "dense_1/kernel", "axes": [None, "model"]}],
}


def losses(events: list[Any]) -> list[float]:
    tables = [table for table in events_of(events, "points") if "val_loss" in table.names]
    return [value for table in tables for value in table.values[table.names.index("val_loss")]]


def test_a_later_runner_takes_over_the_programs_of_the_same_mesh(tmp_path: Path) -> None:
    iris = profiled(tmp_path / "iris", bundled="iris")
    runs: dict[str, Any] = {}
    stored: dict[str, Any] = {}
    for name in ("first", "second"):
        with runner(tmp_path / f"{name}-process") as process:
            runs[name] = process.run(trial_task(tmp_path / name, iris, mesh=MESH))
        assert runs[name][-1].type == "result", runs[name][-1]
        files = sorted((tmp_path / "compiled").rglob("whole-*"))
        stored[name] = [(path.name, path.stat().st_ino) for path in files]
    # A program that could not be loaded would be compiled and stored again.
    assert stored["first"] == stored["second"] != []
    assert losses(runs["first"]) == losses(runs["second"]) != []
    (report,) = events_of(runs["second"], "artifact")
    assert (report.role, report.name) == ("shardings", "shardings.json")
    body = json.loads((tmp_path / "second" / report.path).read_text())
    assert [variable["path"] for variable in body["variables"] if variable["rule"] == 0] == ["dense_1/kernel"]


def test_a_model_is_trained_again_on_more_rows_saved_and_evaluated_as_on_one_device(tmp_path: Path) -> None:
    iris = profiled(tmp_path / "iris", bundled="iris")
    results: dict[str, Any] = {}
    for name, mesh in (("one", None), ("mesh", MESH)):
        with runner(tmp_path / f"{name}-process") as process:
            results[name] = process.run(train_task(tmp_path / name, iris, mesh=mesh))[-1].result
    ours, theirs = results["mesh"], results["one"]
    assert ours["metrics"]["test"] == pytest.approx(theirs["metrics"]["test"], rel=1e-5)
    assert ours["metrics"]["validation"] == pytest.approx(theirs["metrics"]["validation"], rel=1e-5)
    assert (ours["epochs"], ours["best_epoch"]) == (theirs["epochs"], theirs["best_epoch"])
