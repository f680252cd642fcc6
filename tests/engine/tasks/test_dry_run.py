"""The dry run task: some steps in float32 and with another precision, from the same start."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.kinds.dry_run.payload import DryRunTask
from jobs.messages.reports.precision_comparison import PrecisionComparison
from jobs.messages.task import DatasetFile
from tests import own_code
from tests.engine.helpers import spec_of
from tests.engine.making import ArtifactReport, dataset_file
from workers.engine.errors import BadSpec
from workers.engine.tasks import dry_run

FIT = {"batch_size": 16, "seed": 3}


@pytest.fixture(scope="module")
def iris(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return dataset_file(tmp_path_factory.mktemp("iris"), "iris")


def compared(folder: Path, iris: DatasetFile, policy: str, **more: Any) -> PrecisionComparison:
    spec = spec_of("iris", args={"units": 8}, fit=FIT, precision={"policy": policy})
    task = DryRunTask(folder=str(folder), spec=spec, steps=20, dataset=iris, **more)
    # As it is sent to the supervisor.
    result = json.loads(json.dumps(dry_run.run(task, ArtifactReport(folder))))
    return PrecisionComparison.model_validate(result["comparison"])


def test_both_runs_begin_with_the_same_weights_and_differ_by_rounding(
    tmp_path: Path, iris: DatasetFile
) -> None:
    comparison = compared(tmp_path, iris, "float64")
    first, second = comparison.baseline, comparison.compared
    assert (first.policy, second.policy, comparison.platform) == ("float32", "float64", "cpu")
    assert len(first.losses) == len(second.losses) >= 3
    assert first.losses[0] == pytest.approx(second.losses[0], rel=1e-5)
    assert first.losses[0] != second.losses[0]
    assert (first.losses[-1] or 9) < (first.losses[0] or 0)
    assert second.variable_bytes > 1.8 * first.variable_bytes
    assert first.seconds_per_step and second.seconds_per_step


def test_a_scaled_loss_tells_its_skipped_steps(tmp_path: Path, iris: DatasetFile) -> None:
    comparison = compared(tmp_path, iris, "mixed_float16")
    assert comparison.baseline.skipped_steps is None
    assert comparison.compared.skipped_steps is not None and comparison.compared.is_finite


def test_own_code_is_compared_too(tmp_path: Path, iris: DatasetFile) -> None:
    code = own_code.code_in(tmp_path / "code", own_code.SEARCH_OF_LAYERS)
    model = {"kind": "code", "digest": code.digest, "entry": "build_model"}
    spec = spec_of("iris").model_dump(mode="json", exclude={"model", "after"})
    body = {**spec, "model": model, "fit": FIT, "precision": {"policy": "mixed_bfloat16"}}
    task = DryRunTask.model_validate(
        {"folder": str(tmp_path), "spec": body, "steps": 20, "dataset": iris, "code": code}
    )
    result = dry_run.run(task, ArtifactReport(tmp_path))["comparison"]
    assert result["compared"]["losses"] != result["baseline"]["losses"]


def test_a_fit_of_its_own_is_refused(tmp_path: Path, iris: DatasetFile) -> None:
    code = own_code.code_in(tmp_path / "code", OWN_FIT)
    model = {"kind": "code", "digest": code.digest, "entry": "Tuned"}
    body = {"data": {"dataset": "iris"}, "model": model, "precision": {"policy": "mixed_bfloat16"}}
    task = DryRunTask.model_validate(
        {"folder": str(tmp_path), "spec": body, "steps": 20, "dataset": iris, "code": code}
    )
    with pytest.raises(BadSpec, match="one call of fit"):
        dry_run.run(task, ArtifactReport(tmp_path))


OWN_FIT = """
import keras, keras_tuner

class Tuned(keras_tuner.HyperModel):
    def build(self, hp):
        hidden, output = keras.layers.Dense(4), keras.layers.Dense(3, activation="softmax")
        model = keras.Sequential([hidden, output])
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        return model

    def fit(self, hp, model, *args, **kwargs):
        return model.fit(*args, **kwargs)
"""
