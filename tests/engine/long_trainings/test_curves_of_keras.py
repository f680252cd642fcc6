"""Curves of models that code compiles are those of Keras' `fit`, for each kind of loss and metric."""

from pathlib import Path

import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from tests import own_code
from tests.engine.making import dataset_file
from tests.engine.models import test_code_as_in_keras
from tests.engine.models.test_code_as_in_keras import METRICS, WEIGHTS, curves, curves_of_keras
from tests.engine.models.test_own_code_training import trial

LOSSES_OF_LAYERS = (
    own_code.IMPORTS
    + """
class Endpoint(layers.Layer):
    def call(self, x):
        self.add_loss(0.01 * keras.ops.sum(keras.ops.square(x)))
        return x


def build_model(hp):
    keras.utils.set_random_seed(1)
    inputs = keras.Input((4,))
    x = Endpoint()(layers.Dense(8, activity_regularizer="l2", kernel_regularizer="l1")(inputs))
    model = keras.Model(inputs, layers.Dense(3, activation="softmax", name="out")(x))
    model.compile(
        "rmsprop",
        loss="sparse_categorical_crossentropy",
        loss_weights=0.3,
        metrics={"out": ["accuracy"]},
        weighted_metrics=["accuracy"],
        steps_per_execution=2,
    )
    return model
"""
)
BUILT_IN = (
    own_code.IMPORTS
    + """
def build_model(hp):
    keras.utils.set_random_seed(3)
    m = keras.metrics
    model = keras.Sequential([layers.Rescaling(0.01), layers.Dense(1, activation=ENDS)])
    model.compile(keras.optimizers.SGD(0.01), LOSS, metrics=[METRICS])
    return model
"""
)
OF_CLASSES = """
        "accuracy", m.AUC(), m.Precision(), m.Recall(), m.TruePositives(),
        m.F1Score(threshold=0.5), m.FBetaScore(beta=2.0, threshold=0.5), m.PrecisionAtRecall(0.6),
        m.FalseNegatives(), m.BinaryIoU([0, 1], 0.5), m.MeanIoU(2),
        m.BinaryCrossentropy(), m.Hinge(),
"""
OF_NUMBERS = """
        "mae", "mse", m.RootMeanSquaredError(), m.R2Score(), m.MeanAbsolutePercentageError(),
        m.LogCoshError(), m.MeanSquaredLogarithmicError(), m.CosineSimilarity(), m.Poisson(),
        m.KLDivergence(), m.PearsonCorrelation(),
"""


@pytest.mark.parametrize(
    ("loss", "weights", "batch_size"),
    [
        ('"sparse_categorical_crossentropy"', None, 28),
        ("batch_loss", None, 28),
        ('"sparse_categorical_crossentropy"', WEIGHTS, 30),
    ],
)
def test_all_curves_are_those_of_keras(
    tmp_path: Path, iris: DatasetFile, loss: str, weights: dict[str, float] | None, batch_size: int
) -> None:
    test_code_as_in_keras.test_all_curves_are_those_of_keras(tmp_path, iris, loss, weights, batch_size)


def test_losses_of_layers_and_metrics_by_output_are_those_of_keras(tmp_path: Path, iris: DatasetFile) -> None:
    fit = {"batch_size": 28, "epochs": 2}
    parts = {**fit, "shuffle": False, "class_weights": WEIGHTS}
    _, report = trial(tmp_path, LOSSES_OF_LAYERS, "build_model", iris, fit=parts)
    keras_fit = {**fit, "class_weight": dict(enumerate(WEIGHTS.values()))}
    expected, ours = curves_of_keras(LOSSES_OF_LAYERS, iris, keras_fit, tmp_path / "k"), curves(report)
    assert ours.keys() == expected.keys() >= {"accuracy", "val_weighted_accuracy"}
    for name, values in expected.items():
        np.testing.assert_allclose(ours[name], values, rtol=1e-3, err_msg=name)


@pytest.mark.parametrize(
    ("dataset", "ends", "loss", "metrics"),
    [
        ("breast_cancer", "sigmoid", "binary_crossentropy", OF_CLASSES),
        ("diabetes", "softplus", "mse", OF_NUMBERS),
    ],
)
def test_metrics_of_keras_have_the_values_of_keras(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, dataset: str, ends: str, loss: str, metrics: str
) -> None:
    file = dataset_file(tmp_path_factory.mktemp(dataset), dataset)
    text = BUILT_IN.replace("METRICS", metrics).replace("ENDS", repr(ends)).replace("LOSS", repr(loss))
    fit = {"batch_size": 50, "epochs": 2}
    _, report = trial(
        tmp_path, text, "build_model", file, dataset=dataset, fit={**fit, "shuffle": False}
    )  # fmt: skip
    expected, ours = curves_of_keras(text, file, fit, tmp_path / "keras", dataset), curves(report)
    # A metric with one number for each output has its parts too.
    assert expected.keys() <= ours.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(ours[name], values, rtol=1e-3, atol=1e-6, err_msg=name)


def test_curves_are_the_same_if_the_rows_do_not_fit_on_the_device(
    tmp_path: Path, iris: DatasetFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine.compiled import device_feed

    text = METRICS.replace("LOSS", '"sparse_categorical_crossentropy"').replace("MORE", "")
    fit = {"batch_size": 28, "shuffle": False, "epochs": 2}
    _, report = trial(tmp_path / "a", text, "build_model", iris, fit=fit)
    monkeypatch.setattr(device_feed, "RESIDENT_BYTES", 0)
    _, in_blocks = trial(tmp_path / "b", text, "build_model", iris, fit=fit)
    for name, values in curves(report).items():
        np.testing.assert_allclose(curves(in_blocks)[name], values, rtol=1e-4, err_msg=name)
