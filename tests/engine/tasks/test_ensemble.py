import csv
import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from jobs.kinds.ensemble.payload import EnsembleTask
from jobs.messages.member import Member
from jobs.messages.reports.base import MetricValue
from jobs.messages.reports.ensemble import Candidate, EnsembleReport
from jobs.messages.reports.verdicts import verdict
from jobs.messages.task import DatasetFile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.after import Ensemble
from jobs.spec.sections.data import Task
from tests.engine.making import ArtifactReport, dataset_file, spec_for, train_member
from tests.next_steps import has_next_step
from tests.present import present
from workers.engine.arrays import Array
from workers.engine.data.dataset import load_dataset
from workers.engine.evaluation.members import (
    BadMembers,
    best_single,
    ensemble_warnings,
    read_predictions,
)
from workers.engine.models.files import load_model
from workers.engine.models.outputs import output_names
from workers.engine.report import TaskInterrupted
from workers.engine.tasks import ensemble

Setting = tuple[ExperimentSpec, DatasetFile, tuple[Member, ...]]


@pytest.fixture(scope="module", params=["wine", "breast_cancer", "diabetes"])
def setting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Setting:
    """Three trained members for a multiclass, a binary and a regression task."""
    folder = tmp_path_factory.mktemp(request.param)
    spec, file = spec_for(request.param), dataset_file(folder, request.param)
    members = tuple(
        train_member(folder, f"m{k}", spec, file, units=units, seed=k) for k, units in enumerate([4, 16, 32])
    )
    return spec, file, members


def task_for(
    setting: Setting, folder: Path, method: str = "weighted", members: tuple[Member, ...] | None = None
) -> EnsembleTask:
    spec, file, trained = setting
    return EnsembleTask(
        folder=str(folder), spec=spec, dataset=file, members=members or trained,
        ensemble=Ensemble(method=method),
    )  # fmt: skip


@pytest.fixture(scope="module")
def done(setting: Setting, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], ArtifactReport]:
    folder = tmp_path_factory.mktemp("ensemble")
    report = ArtifactReport(folder)
    return ensemble.run(task_for(setting, folder), report), report


def test_the_saved_model_is_the_weighted_mean_of_its_members(
    setting: Setting, done: tuple[dict[str, Any], ArtifactReport], tmp_path: Path
) -> None:
    spec, file, members = setting
    result, report = done
    x = load_dataset(file, present(spec.data)).x
    weights = {entry["member"]: entry["weight"] for entry in result["weights"]}
    models = {member.name: keras.models.load_model(link(member, tmp_path)) for member in members}
    expected = sum(weights[name] * model.predict(x, verbose=0) for name, model in models.items())
    saved = keras.models.load_model(report.artifacts["model"], safe_mode=True)
    scale = max(1.0, np.abs(expected).max())
    assert np.abs(saved.predict(x, verbose=0) - expected).max() <= 1e-6 * scale


def read(report: ArtifactReport) -> EnsembleReport:
    return EnsembleReport.model_validate_json(report.artifacts["report"].read_bytes())


def link(member: Member, folder: Path) -> Path:
    path = folder / f"{member.name}.keras"
    path.symlink_to(member.model)
    return path


def test_the_weights_sum_to_one_and_name_every_member(
    setting: Setting, done: tuple[dict[str, Any], ArtifactReport]
) -> None:
    result, _ = done
    assert [entry["member"] for entry in result["weights"]] == [m.name for m in setting[2]]
    assert sum(entry["weight"] for entry in result["weights"]) == pytest.approx(1)


def test_the_report_compares_all_candidates(
    setting: Setting, done: tuple[dict[str, Any], ArtifactReport]
) -> None:
    _, report = done
    comparison = read(report)
    assert [c.name for c in comparison.candidates] == ["m0", "m1", "m2", "mean", "ensemble"]
    assert len(comparison.diversity.pairs) == 3
    assert len(comparison.leave_one_out) == 3
    loss = present(comparison.candidate("ensemble").loss)
    assert loss <= min(present(c.loss) for c in comparison.candidates) + 1e-3
    assert comparison.fit.loss == loss
    assert comparison.best_single in {"m1", "m2"}
    assert present(comparison.difference) < 1e-2


def test_the_gain_over_the_best_member_is_measured_on_rows_that_the_weights_were_not_fitted_on(
    done: tuple[dict[str, Any], ArtifactReport],
) -> None:
    _, report = done
    comparison = read(report)
    alone, fit = comparison.candidate(comparison.best_single).loss, comparison.fit
    gain = present(fit.gain)
    value = present(gain.value)
    assert value == pytest.approx(present(alone) - present(fit.loss_held_out))
    assert present(gain.low) <= value <= present(gain.high)


def test_only_the_ensemble_is_evaluated_on_test_data(
    setting: Setting, done: tuple[dict[str, Any], ArtifactReport]
) -> None:
    result, report = done
    evaluation = json.loads(report.artifacts["evaluation"].read_text())
    assert evaluation["rows"] == result["test_rows"]
    assert result["metrics"]["test"] == {n: m["value"] for n, m in evaluation["metrics"].items()}
    with report.artifacts["predictions"].open() as file:
        assert len(list(csv.reader(file))) == result["test_rows"] + 1


def test_validation_metrics_have_the_names_that_trainings_use(
    setting: Setting, done: tuple[dict[str, Any], ArtifactReport]
) -> None:
    result, _ = done
    assert "loss" in result["metrics"]["validation"]
    assert result["signature"]["inputs"][0]["name"] == "input"


def test_a_plain_mean_has_equal_weights(setting: Setting, tmp_path: Path) -> None:
    result = ensemble.run(task_for(setting, tmp_path, "mean"), ArtifactReport(tmp_path))
    assert [entry["weight"] for entry in result["weights"]] == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("weights", [(0.25, 0.75), (0.0, 1.0)])
def test_the_output_of_an_ensemble_is_called_like_that_of_a_single_model(weights: tuple[float, ...]) -> None:
    """Clients that read it by its name need no change when one replaces the other."""
    members = [keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, name="output")]) for _ in weights]
    assert output_names(members[0]) == ["output"]
    assert output_names(ensemble.combine(members, np.array(weights))) == ["output"]


def test_members_of_one_name_and_one_configuration_are_combined_with_a_warning(tmp_path: Path) -> None:
    spec, file = spec_for("wine"), dataset_file(tmp_path, "wine")
    members = tuple(train_member(tmp_path, f"m{k}", spec, file, seed=k, model_name="same") for k in range(2))
    report = ArtifactReport(tmp_path / "run")
    ensemble.run(task_for((spec, file, members), tmp_path / "run", "mean"), report)
    assert "members_differ_by_seed_only" in report.warnings
    assert len(load_model(report.artifacts["model"], tmp_path).layers) == 6


def test_an_ensemble_no_better_than_its_best_member_has_a_warning(tmp_path: Path) -> None:
    spec, file = spec_for("wine"), dataset_file(tmp_path, "wine")
    good = train_member(tmp_path, "good", spec, file).model_copy(update={"title": "Retrain trial 2"})
    bad = train_member(tmp_path, "bad", spec, file, units=2)
    report = ArtifactReport(tmp_path / "run")
    result = ensemble.run(task_for((spec, file, (good, bad)), tmp_path / "run"), report)
    assert "ensemble_not_better" in report.warnings
    assert result["best_single"] == "good"
    comparison = read(report)
    assert [member.title for member in comparison.members] == ["Retrain trial 2", "bad"]
    message = dict(ensemble_warnings(comparison, (good, bad)))["ensemble_not_better"]
    assert message.startswith(verdict(comparison)), "a warning and the findings are the same sentence"
    assert "Retrain trial 2" in message and "Serve" not in message
    assert has_next_step(message)


def stored(folder: Path, name: str, rows: Array, y_pred: Array) -> Member:
    path = folder / f"{name}.npz"
    np.savez(path, rows=rows, y_true=np.zeros(len(rows)), y_pred=y_pred)
    return Member(name=name, model="", validation_predictions=str(path))


def test_members_with_other_validation_rows_are_rejected(tmp_path: Path) -> None:
    a = stored(tmp_path, "a", np.arange(3), np.zeros((3, 2)))
    b = stored(tmp_path, "b", np.arange(1, 4), np.zeros((3, 2)))
    c = stored(tmp_path, "c", np.arange(3), np.zeros((3, 5)))
    with pytest.raises(BadMembers, match="b was validated on other rows than a"):
        read_predictions([a, b], "multiclass")
    with pytest.raises(BadMembers, match="c predicts"):
        read_predictions([a, c], "multiclass")


def test_a_task_stops_at_the_next_step_after_a_request(setting: Setting, tmp_path: Path) -> None:
    report = ArtifactReport(tmp_path)
    report.pending_request = "stop"
    with pytest.raises(TaskInterrupted):
        ensemble.run(task_for(setting, tmp_path), report)


@pytest.mark.parametrize(("task", "best"), [("multiclass", "high"), ("regression", "low")])
def test_a_member_whose_metric_is_undefined_is_not_the_best_one(task: Task, best: str) -> None:
    metric = "accuracy" if task == "multiclass" else "rmse"
    members = [
        Candidate(name=name, kind="member", metrics={metric: MetricValue(value=value, rows=9)}, loss=1.0)
        for name, value in (("undefined", None), ("low", 0.1), ("high", 0.9))
    ]
    assert best_single(members, task).name == best
