"""A dry build names metrics of Keras that measure something else than their names."""

from pathlib import Path

import pytest

from jobs.spec.checks.dry_build import DataShape
from tests import own_code
from tests.engine.models.test_own_code import dry_built

TWO = DataShape(kind="vector", task="binary", input_shape=(4,), outputs=1)
THREE = DataShape(kind="vector", task="multiclass", input_shape=(4,), outputs=3)
LABELS = DataShape(kind="vector", task="multilabel", input_shape=(4,), outputs=3)
OF_LOGITS = "keras.losses.BinaryCrossentropy(from_logits=True)"
ONE_HOT = "'categorical_crossentropy'"
ENDS = {"sigmoid": "'binary_crossentropy'", "linear": OF_LOGITS, "softmax": ONE_HOT}
MODEL = (
    own_code.IMPORTS
    + """
def build_model(hp):
    model = keras.Sequential([layers.Dense(OUTPUTS, activation="ACTIVATION")])
    model.compile("adam", LOSS, metrics=[METRIC])
    return model
"""
)
METRICS = "keras.metrics."
TRAPS: list[tuple[DataShape, str, str, str]] = [
    (TWO, "sigmoid", "keras.metrics.F1Score(name='f1')", "the metric f1 takes the largest output"),
    (TWO, "sigmoid", "keras.metrics.F1Score(threshold=0.5)", ""),
    (TWO, "sigmoid", "keras.metrics.FBetaScore()", "give it threshold=0.5"),
    (TWO, "sigmoid", "'categorical_accuracy'", "the same value for every model"),
    (TWO, "sigmoid", "keras.metrics.SparseCategoricalAccuracy()", "take \"accuracy\" or"),
    (TWO, "sigmoid", "'accuracy'", ""),
    (TWO, "sigmoid", "keras.metrics.AUC()", ""),
    (TWO, "sigmoid", "keras.metrics.AUC(from_logits=True)", "leave out from_logits=True"),
    (TWO, "sigmoid", "keras.metrics.BinaryCrossentropy(from_logits=True)", "leave out from_logits=True"),
    (TWO, "sigmoid", "keras.metrics.MeanIoU(num_classes=2)", "keras.metrics.BinaryIoU()"),
    (TWO, "linear", "'accuracy'", "keras.metrics.BinaryAccuracy(threshold=0)"),
    (TWO, "linear", "keras.metrics.BinaryAccuracy(threshold=0.0)", ""),
    (TWO, "linear", "keras.metrics.AUC()", "keras.metrics.AUC(from_logits=True)"),
    (TWO, "linear", "keras.metrics.AUC(from_logits=True)", ""),
    (TWO, "linear", "'binary_crossentropy'", "keras.metrics.BinaryCrossentropy(from_logits=True)"),
    (TWO, "linear", "keras.metrics.Precision()", "give it thresholds=0"),
    (TWO, "linear", "keras.metrics.Precision(thresholds=0)", ""),
    (THREE, "softmax", "'accuracy'", ""),
    (THREE, "softmax", "keras.metrics.Precision()", "give it class_id for one class"),
    (THREE, "softmax", "keras.metrics.Precision(class_id=1)", ""),
    (THREE, "softmax", "keras.metrics.BinaryAccuracy()", "a model that finds no class has 0.67"),
    (THREE, "softmax", "keras.metrics.F1Score(average='macro')", ""),
    (LABELS, "sigmoid", "'accuracy'", "compares only the largest output of a row"),
    (LABELS, "sigmoid", "keras.metrics.F1Score(average='macro')", "which may have several labels"),
    (LABELS, "sigmoid", "'binary_accuracy'", ""),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "activation", "metric", "note"), TRAPS)
def test_a_metric_that_measures_something_else_is_named_with_what_would_do(
    tmp_path: Path, shape: DataShape, activation: str, metric: str, note: str
) -> None:
    text = MODEL.replace("OUTPUTS", str(shape.outputs)).replace("ACTIVATION", activation)
    built = dry_built(tmp_path, text.replace("LOSS", ENDS[activation]).replace("METRIC", metric), shape=shape)
    assert note in " ".join(built.notes)
    assert bool(built.notes) is bool(note), built.notes
