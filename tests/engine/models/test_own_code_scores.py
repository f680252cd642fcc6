"""Scores and errors of models in own code."""

from pathlib import Path

import keras
import numpy as np
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


TWO = DataShape(kind="vector", task="binary", input_shape=(4,), outputs=1)
THREE = DataShape(kind="vector", task="multiclass", input_shape=(4,), outputs=3)
OF_LOGITS = "keras.losses.SparseCategoricalCrossentropy(from_logits=True)"
BINARY_OF_LOGITS = "keras.losses.BinaryCrossentropy(from_logits=True)"
OUTPUTS: dict[str, tuple[DataShape, str, str, str, str]] = {
    "probabilities": (THREE, "softmax", "'sparse_categorical_crossentropy'", "probabilities", ""),
    "logits": (THREE, "linear", OF_LOGITS, "logits", ""),
    "one loss in a list": (THREE, "linear", f"[{OF_LOGITS}]", "logits", ""),
    "softmax twice": (THREE, "softmax", OF_LOGITS, "probabilities", "applies softmax a second time"),
    "sigmoid twice": (TWO, "sigmoid", BINARY_OF_LOGITS, "probabilities", "applies sigmoid a second time"),
    "no activation": (
        THREE, "linear", "'sparse_categorical_crossentropy'", "probabilities",
        "they may be below 0 or above 1: end the model with the activation softmax",
    ),
    "no activation, one output": (
        TWO, "linear", "'binary_crossentropy'", "probabilities", "end the model with the activation sigmoid",
    ),
    "a sigmoid for each class": (
        THREE, "sigmoid", "'binary_crossentropy'", "probabilities", "do not add up to 1 for a row",
    ),
    "scores of hinge": (TWO, "tanh", "'hinge'", "logits", "trains scores, not probabilities"),
    "scores of several classes": (
        THREE, "linear", "'categorical_hinge'", "logits", "trains scores, not probabilities",
    ),
    "logarithms": (
        THREE, "log_softmax", "lambda y, p: -ops.sum(ops.one_hot(ops.cast(y, 'int32'), 3) * p, -1)",
        "logits", "",
    ),
}  # fmt: skip
ENDS_WITH = (
    own_code.IMPORTS
    + """
from keras import ops

def build_model(hp):
    model = keras.Sequential([layers.Dense(OUTPUTS, activation="ACTIVATION")])
    model.compile("adam", LOSS, metrics=["accuracy"])
    return model
"""
)


@pytest.mark.parametrize(("shape", "activation", "loss", "output", "note"), OUTPUTS.values(), ids=OUTPUTS)
def test_outputs_are_what_the_last_layer_returns_and_a_loss_that_takes_others_is_named(
    tmp_path: Path, shape: DataShape, activation: str, loss: str, output: str, note: str
) -> None:
    text = ENDS_WITH.replace("OUTPUTS", str(shape.outputs)).replace("ACTIVATION", activation)
    built = dry_built(tmp_path, text.replace("LOSS", loss), shape=shape)
    assert built.output == output
    assert note in " ".join(built.notes)
    assert bool(built.notes) is bool(note)


def test_of_two_outputs_the_larger_one_is_the_class(tmp_path: Path) -> None:
    from workers.engine.models.code_models.code_build import finished, finished_rows

    rows = np.array([[0.3, 0.4], [0.9, 0.8], [0.25, 0.75]], np.float32)
    found = finished_rows(rows, "two_probabilities", TWO)
    np.testing.assert_allclose(found, [[0.55], [0.45], [0.75]], atol=1e-6)
    inputs = keras.Input((2,))
    model = keras.Model(inputs, finished(inputs, "two_probabilities", TWO))
    np.testing.assert_allclose(model(rows), found, atol=1e-6)


FOCAL = """
def focal(y_true, y_pred):
    y_pred = ops.clip(y_pred, 1e-7, 1 - 1e-7)
    return ops.sum(-y_true * (1 - y_pred) ** 2 * ops.log(y_pred), axis=-1)


def focal_of_numbers(y_true, y_pred):
    return focal(ops.one_hot(ops.cast(y_true, "int32"), 3), y_pred)

"""


@pytest.mark.parametrize(("loss", "one_hot"), [("focal", True), ("focal_of_numbers", False)])
def test_a_loss_of_the_code_gets_the_targets_with_which_it_can_be_computed(
    tmp_path: Path, loss: str, one_hot: bool
) -> None:
    text = ENDS_WITH.replace("\ndef build", FOCAL + "\ndef build").replace("LOSS", loss)
    text = text.replace("OUTPUTS", "3").replace("ACTIVATION", "softmax")
    assert dry_built(tmp_path, text, shape=THREE).one_hot is one_hot
