"""Scores and errors of models in own code."""

from pathlib import Path

import pytest

from jobs.messages.task import DatasetFile
from jobs.spec.checks.dry_build import DataShape
from tests import own_code
from tests.engine.making import dataset_file
from tests.engine.models.test_own_code import dry_built
from tests.engine.models.test_own_code_training import trained, trial
from workers.engine.errors import CodeFailure


@pytest.fixture(scope="module")
def iris(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return dataset_file(tmp_path_factory.mktemp("iris"), "iris")


@pytest.mark.parametrize("loss", ["sparse_categorical_crossentropy"])
def test_two_outputs_for_two_classes_become_the_probability_of_the_second(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, loss: str
) -> None:
    from workers.engine.models.files import load_model

    text = own_code.SEARCH_OF_LAYERS.replace("Dense(3,", "Dense(2,").replace("categorical_crossentropy", loss)
    text += "\n\ndef preprocess(x):\n    return keras.ops.log1p(x)\n"
    file = dataset_file(tmp_path_factory.mktemp("cancer"), "breast_cancer")
    result, report, _ = trained(
        tmp_path, text, "build_model", file, dataset="breast_cancer",
        model={"hyperparameters": {"rate": 0.03}},
    )  # fmt: skip
    assert load_model(report.artifacts["model"], tmp_path).output_shape == (None, 1)
    assert result["metrics"]["test"]["accuracy"] > 0.75


def test_errors_in_an_epoch_name_the_line_of_the_code(tmp_path: Path, iris: DatasetFile) -> None:
    text = own_code.CUSTOM_LOOP.replace("best = min(best, value)", "raise KeyError('lost')")
    _, report = trial(tmp_path, text, "OwnLoop", iris, metric="val_my_metric")
    ((_, error),) = [(args, args[0]) for args, _ in report.of("trial_finished")]
    assert isinstance(error, CodeFailure)
    assert "fit failed: KeyError: 'lost' (model.py, line" in str(error)


DENSE_ON_IMAGES = """
import keras


def build_model(hp):
    return keras.Sequential([keras.layers.Dense(hp.Int("units", 4, 8)), keras.layers.Dense(3)])
"""


def test_a_model_that_keeps_the_rows_of_an_image_is_told_to_flatten_them(tmp_path: Path) -> None:
    images = DataShape(kind="image", task="multiclass", input_shape=(4, 4, 1), outputs=3)
    with pytest.raises(CodeFailure, match=r"\(4, 4, 3\), but 3 classes need 3: add a layer such as Flatten"):
        dry_built(tmp_path, DENSE_ON_IMAGES, shape=images)
