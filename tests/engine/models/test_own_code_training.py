"""Models in own code: trained, continued, saved and pooled like others."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.messages.task import DatasetFile, OwnCode
from jobs.messages.training import ExecutionPlan, TrainTask, TrialPlan, TrialTask
from jobs.spec.experiment import ExperimentSpec
from tests import own_code
from tests.engine.helpers import RecordingReport
from tests.engine.making import ArtifactReport, dataset_file
from tests.unsavable_models import SAVABLE


class TrainingReport(ArtifactReport):
    """Records a training's artifacts, and the names of its curves."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.names: set[str] = set()

    def metric(self, *args: Any, **named: Any) -> None:
        self.names.update(args[1])

    def recorded(self) -> tuple[str, ...]:
        return ()


def trained(
    folder: Path, text: str, entry: str, file: DatasetFile, *, metric: str = "val_loss",
    direction: str = "min", **parts: Any
) -> tuple[dict[str, Any], TrainingReport, TrainTask]:  # fmt: skip
    """Train, retrain on more rows, save and evaluate a model, as the step after a search does."""
    from workers.engine.tasks import train

    code = own_code.code_in(folder / "code", text)
    search = {"objective": {"metric": metric, "direction": direction}}
    task = TrainTask(
        folder=str(folder / "run"),
        code=code,
        spec=spec(code, entry, search=search, **parts),
        dataset=file,
        retrain={"patience": 3, "epochs_cap": 4, "epochs_factor": 1.5},
        objective=search["objective"],
        model_name="m1",
    )
    report = TrainingReport(folder / "run")
    return train.run(task, report), report, task


def spec(code: OwnCode, entry: str, *, dataset: str = "iris", **parts: Any) -> ExperimentSpec:
    model = {"kind": "code", "digest": code.digest, "entry": entry, **parts.pop("model", {})}
    fit = {"epochs": 4, "batch_size": 32, "learning_rate": 0.03, **parts.pop("fit", {})}
    return ExperimentSpec.model_validate(
        {"version": 1, "data": {"dataset": dataset}, "model": model, "fit": fit, **parts}
    )


def trial(
    folder: Path, text: str, entry: str, file: DatasetFile, *, metric: str = "val_loss",
    direction: str = "min", seeds: tuple[int, ...] = (1,), **parts: Any
) -> tuple[dict[str, Any], RecordingReport]:  # fmt: skip
    """Run one trial; return its result and its reports."""
    from workers.engine.tasks import trial as task

    code = own_code.code_in(folder / "code", text)
    trial_spec = spec(code, entry, **parts)
    executions = tuple(ExecutionPlan(execution=i, seed=seed) for i, seed in enumerate(seeds, 1))
    report = RecordingReport(folder)
    result = task.run(
        TrialTask(
            folder=str(folder),
            code=code,
            spec=trial_spec,
            objective={"metric": metric, "direction": direction},
            dataset=file,
            trials=(TrialPlan(number=1, values={}, spec=trial_spec, executions=executions),),
        ),
        report,
    )
    return result, report


@pytest.fixture(scope="module")
def iris(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return dataset_file(tmp_path_factory.mktemp("iris"), "iris")


@pytest.fixture(scope="module")
def diabetes(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return dataset_file(tmp_path_factory.mktemp("diabetes"), "diabetes")


# The other code is trained in `tests/engine/long_trainings`.
@pytest.mark.parametrize(
    ("text", "entry", "metric", "direction"),
    [
        (own_code.NOT_COMPILED, "build_model", "val_accuracy", "max"),
        (own_code.TUNED_FIT, "TunedFit", "val_accuracy", "max"),
        (own_code.CUSTOM_LOOP, "OwnLoop", "val_my_metric", "min"),
    ],
)
def test_a_trial_trains_code(
    tmp_path: Path, iris: DatasetFile, text: str, entry: str, metric: str, direction: str
) -> None:
    result, _ = trial(tmp_path, text, entry, iris, metric=metric, direction=direction, seeds=(1, 2))
    (trial_result,) = result["trials"]
    assert [execution["state"] for execution in trial_result["executions"]] == ["completed"] * 2
    assert np.isfinite(trial_result["score"])


def test_an_own_fit_gets_the_rows_of_its_fold(tmp_path: Path, iris: DatasetFile) -> None:
    from workers.engine.tasks import trial as task

    text = own_code.CUSTOM_LOOP.replace("return best", "return float(len(x_val))")
    code = own_code.code_in(tmp_path / "code", text)
    trial_spec = spec(code, "OwnLoop", search={"evaluation": {"kind": "k_fold", "folds": 4}})
    plans = tuple(ExecutionPlan(execution=i, seed=1, fold=i) for i in (1, 2))
    result = task.run(
        TrialTask(
            folder=str(tmp_path), code=code, spec=trial_spec,
            objective={"metric": "val_rows", "direction": "max"},
            dataset=iris, trials=(TrialPlan(number=1, values={}, spec=trial_spec, executions=plans),),
        ),
        RecordingReport(tmp_path),
    )  # fmt: skip
    # Four folds of the 120 rows beside the test rows.
    assert [execution["score"] for execution in result["trials"][0]["executions"]] == [30.0, 30.0]


def test_an_objective_that_fit_returns_is_the_score(tmp_path: Path, diabetes: DatasetFile) -> None:
    result, _ = trial(tmp_path, own_code.RETURNED_OBJECTIVE, "Regression", diabetes, dataset="diabetes")
    (trial_result,) = result["trials"]
    assert 20 < trial_result["score"] < 200


@pytest.mark.parametrize(
    ("text", "entry", "metric", "direction", "custom"),
    [
        (own_code.OWN_OBJECTS, "build_model", "val_macro_recall", "max", True),
        (own_code.TUNED_FIT, "TunedFit", "val_accuracy", "max", False),
        (own_code.CUSTOM_LOOP, "OwnLoop", "val_my_metric", "min", False),
    ],
)
def test_a_model_of_code_is_retrained_saved_and_loaded(
    tmp_path: Path, iris: DatasetFile, text: str, entry: str, metric: str, direction: str, custom: bool
) -> None:
    from workers.engine.models.files import load_model
    from workers.engine.models.own_code.in_use import using_code

    result, report, task = trained(tmp_path, text, entry, iris, metric=metric, direction=direction)
    assert result["metrics"]["test"]["accuracy"] > 0.2
    assert np.isfinite(result["score"])
    with np.load(report.artifacts["validation_predictions"]) as arrays:
        np.testing.assert_allclose(arrays["y_pred"].sum(axis=1), 1, atol=1e-5)
    model_file = report.artifacts["model"]
    if custom:
        with pytest.raises((TypeError, ValueError)):
            load_model(model_file, tmp_path)
    with using_code(task.code):
        model = load_model(model_file, tmp_path)
    assert model.name == "m_m1" and model.output_shape == (None, 3)


def test_constants_that_a_build_draws_are_those_of_the_trained_model_in_its_file(
    tmp_path: Path, iris: DatasetFile
) -> None:
    _, report, _ = trained(tmp_path, SAVABLE["random numbers of the seed"], "build_model", iris)
    assert "model" in report.artifacts


DEEP_IN_16_BITS = (
    own_code.IMPORTS
    + """
keras.config.set_dtype_policy("mixed_bfloat16")

def build_model(hp):
    hidden = [layers.Dense(64, activation="gelu") for _ in range(8)]
    model = keras.Sequential([layers.BatchNormalization(), *hidden, layers.Dense(3, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    return model
"""
)


def test_a_model_that_code_lets_compute_in_16_bits_is_saved(tmp_path: Path, iris: DatasetFile) -> None:
    _, report, _ = trained(tmp_path, DEEP_IN_16_BITS, "build_model", iris)
    assert "model" in report.artifacts
