"""Each curve of a model that code compiles is that of Keras' `fit` on the same rows, batch by batch."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from tests import own_code
from tests.engine.making import dataset_file
from tests.engine.models.test_own_code import dry_built
from tests.engine.models.test_own_code_training import spec, trial
from tests.present import present

METRICS = (
    own_code.IMPORTS
    + '''
class Hits(keras.metrics.Metric):
    """As in the guide of Keras: its state is a sum."""

    def __init__(self, name="hits", **kwargs):
        super().__init__(name=name, **kwargs)
        self.hits = self.add_variable(shape=(), initializer="zeros", name="hits")

    def update_state(self, y_true, y_pred, sample_weight=None):
        found = keras.ops.cast(keras.ops.argmax(y_pred, axis=1), "int32")
        values = keras.ops.cast(keras.ops.cast(keras.ops.reshape(y_true, (-1,)), "int32") == found, "float32")
        if sample_weight is not None:
            values = keras.ops.multiply(values, keras.ops.cast(sample_weight, "float32"))
        self.hits.assign_add(keras.ops.sum(values))

    def result(self):
        return self.hits.value


def f1_m(y_true, y_pred):
    """One number for a batch, as in many answers to questions about Keras 1."""
    true = keras.ops.one_hot(keras.ops.cast(keras.ops.reshape(y_true, (-1,)), "int32"), 3)
    both = keras.ops.sum(keras.ops.round(keras.ops.clip(true * y_pred, 0, 1)))
    precision = both / (keras.ops.sum(keras.ops.round(y_pred)) + 1e-7)
    recall = both / (keras.ops.sum(true) + 1e-7)
    return 2 * precision * recall / (precision + recall + 1e-7)


def row_f1(y_true, y_pred):
    """One number for each row."""
    return keras.ops.max(y_pred, axis=-1)


def batch_loss(y_true, y_pred):
    """A loss that returns one number for a batch."""
    loss = keras.losses.sparse_categorical_crossentropy(y_true, y_pred)
    return keras.ops.mean(loss) + 0.01 * f1_m(y_true, y_pred)


def build_model(hp):
    keras.utils.set_random_seed(7)
    model = keras.Sequential([
        keras.Input((4,)),
        layers.Dense(8, activation="relu", kernel_regularizer="l2"),
        layers.BatchNormalization(),
        layers.Dense(3, activation="softmax"),
    ])
    model.compile(
        keras.optimizers.Adam(0.01),
        LOSS,
        metrics=["accuracy", Hits(), f1_m, row_f1, keras.metrics.SparseTopKCategoricalAccuracy(k=2)],
        weighted_metrics=[keras.metrics.SparseCategoricalAccuracy(name="weighted")],
        MORE
    )
    return model
'''
)


@pytest.fixture(scope="module")
def iris(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return dataset_file(tmp_path_factory.mktemp("iris"), "iris")


def curves(report: Any) -> dict[str, list[float]]:
    """Return the recorded series by name, apart from the learning rate."""
    points = [values for (_, values), _ in report.of("metric")]
    return {name: [point[name] for point in points] for name in points[0] if name != "lr"}


def curves_of_keras(
    text: str, file: DatasetFile, fit: dict[str, Any], folder: Path, dataset_name: str = "iris"
) -> dict[str, list[float]]:
    """Return the history of plain `model.fit` for the same rows."""
    import keras

    from workers.engine.data.dataset import load_dataset

    # Otherwise names are numbered: the second AUC of a process is "auc_1".
    keras.backend.clear_session()
    scope: dict[str, Any] = {}
    exec(text, scope)
    code = own_code.code_in(folder, text)
    dataset = load_dataset(file, present(spec(code, "build_model", dataset=dataset_name).data))
    # Metrics such as F1Score refuse targets without a dimension for the outputs.
    targets = dataset.y[:, None] if dataset.task == "binary" else dataset.y
    (x, y), validation = (
        (dataset.x[rows], targets[rows]) for rows in (dataset.parts.train, dataset.parts.validation)
    )
    history = scope["build_model"](None).fit(
        x, y, validation_data=validation, shuffle=False, verbose=0, **fit
    ).history  # fmt: skip
    return {name: [float(np.mean(value)) for value in values] for name, values in history.items()}


WEIGHTS = {"setosa": 1.0, "versicolor": 2.0, "virginica": 5.0}


# 90 training rows and 30 for validation: of 28 rows, the last batch is shorter in both.
@pytest.mark.parametrize(
    ("loss", "weights", "batch_size"), [('"sparse_categorical_crossentropy"', WEIGHTS, 28)]
)
def test_all_curves_are_those_of_keras(
    tmp_path: Path, iris: DatasetFile, loss: str, weights: dict[str, float] | None, batch_size: int
) -> None:
    text = METRICS.replace("LOSS", loss).replace("MORE", "loss_weights=[0.5]," if batch_size == 30 else "")
    fit = {"batch_size": batch_size, "shuffle": False, "epochs": 3}
    _, report = trial(
        tmp_path, text, "build_model", iris, fit={**fit, "class_weights": weights or "none"}
    )  # fmt: skip
    given = {} if weights is None else {"class_weight": dict(enumerate(weights.values()))}
    keras_fit = {"batch_size": batch_size, "epochs": 3, **given}
    expected, ours = curves_of_keras(text, iris, keras_fit, tmp_path / "keras"), curves(report)
    assert ours.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(ours[name], values, rtol=2e-4, err_msg=name)


def test_a_dry_build_accepts_metrics_and_losses_of_a_batch(tmp_path: Path) -> None:
    built = dry_built(tmp_path, METRICS.replace("LOSS", "batch_loss").replace("MORE", ""))
    assert {"val_loss", "val_hits", "val_f1_m", "val_row_f1", "val_weighted"} <= set(built.metrics)


def test_an_objective_of_weighted_rows_is_their_weighted_mean(tmp_path: Path, iris: DatasetFile) -> None:
    from workers.engine.data.dataset import load_dataset
    from workers.engine.data.weights import RowWeights
    from workers.engine.models.own_code.in_use import using_code
    from workers.engine.training.own_code import prepare_code

    code = own_code.code_in(tmp_path / "code", own_code.SEARCH_OF_LAYERS)
    of_code = spec(code, "build_model")
    dataset = load_dataset(iris, present(of_code.data))
    x, y = dataset.take(dataset.parts.validation)
    weights = np.where(np.arange(len(y)) == 0, 1.0, 0.01)
    p = np.random.default_rng(0).dirichlet(np.ones(3), len(y))
    losses = -np.log(p[np.arange(len(y)), y])
    with using_code(code):
        prepared = prepare_code(of_code, dataset, dataset.parts.train, seed=1)
        rows = prepared._evaluation_set(x, y, RowWeights("weight", weights))
        assert rows.score("loss", y, p, weights) == pytest.approx(
            np.average(losses, weights=weights), rel=1e-4
        )
        assert rows.score("loss", y, p, None) == pytest.approx(losses.mean(), rel=1e-4)
        assert np.isnan(rows.score("loss", y, p, np.zeros(len(y))))
