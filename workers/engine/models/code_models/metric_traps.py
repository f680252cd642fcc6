"""Names metrics of Keras that measure something else for a model's outputs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import keras

from jobs.spec.checks.dry_build import DataShape, Output
from workers.engine.models import keras_private
from workers.engine.models.keras_origin import is_of_keras

OF_LARGEST = ("categorical_accuracy", "sparse_categorical_accuracy", "top_k_categorical_accuracy",
              "sparse_top_k_categorical_accuracy")  # fmt: skip
"""Metrics that compare the largest output with the class."""
F_SCORES = ("f1_score", "f_beta_score")
CROSSENTROPIES = ("binary_crossentropy", "categorical_crossentropy", "sparse_categorical_crossentropy")
OF_THRESHOLDS = (
    "precision",
    "recall",
    "true_positives",
    "true_negatives",
    "false_positives",
    "false_negatives",
)
AREAS = ("auc", "precision_at_recall", "recall_at_precision", "sensitivity_at_specificity",
         "specificity_at_sensitivity")  # fmt: skip
IOUS = ("mean_io_u", "io_u")
ACCURACIES = ("accuracy", "acc")
SHORT = {"ce": "crossentropy", "bce": "binary_crossentropy"}


@dataclass(frozen=True)
class _Outputs:
    """The outputs and targets that the metrics get.

    Attributes:
        is_logits: whether the outputs are logits.
        width: how many outputs a row has.
        is_one_hot: whether the targets have a number for each class.
        is_multilabel: whether a row may have several labels.
    """

    is_logits: bool
    width: int
    is_one_hot: bool
    is_multilabel: bool


def notes_on_metrics(model: Any, output: Output, shape: DataShape, *, is_one_hot: bool) -> Iterator[str]:
    """Yield a sentence for each compiled metric that measures something else for these outputs.

    Args:
        model: the code's model, compiled.
        output: the meaning of its outputs.
        shape: the data shape.
        is_one_hot: whether its targets have a number for each class.
    """
    if output == "numbers":
        return
    width = 2 if output.startswith("two_") else 1 if shape.task == "binary" else shape.outputs
    outputs = _Outputs(output.endswith("logits"), width, is_one_hot, shape.task == "multilabel")
    for metric in keras.tree.flatten(keras_private.metrics_given(model)):
        if isinstance(metric, str) or (isinstance(metric, keras.Metric) and is_of_keras(metric)):
            kind = _kind(metric)
            if (trap := _trap(metric, kind, outputs)) is not None:
                yield f"the metric {metric if isinstance(metric, str) else metric.name} {trap}"


def _kind(metric: Any) -> str:
    name = metric if isinstance(metric, str) else type(metric).__name__
    snake = str(keras_private.to_snake_case(name))
    return SHORT.get(snake, snake)


def _trap(metric: Any, kind: str, outputs: _Outputs) -> str | None:
    """Return the value that a metric measures instead, with the remedy; None if it fits."""
    if kind in F_SCORES:
        return _trap_of_score(metric, outputs)
    if kind in OF_LARGEST and outputs.width == 1:
        return (
            "compares the largest output, and with one output that is always the same class, so it has the "
            'same value for every model: take "accuracy" or keras.metrics.BinaryAccuracy()'
        )
    if kind in (*ACCURACIES, *OF_LARGEST) and outputs.is_multilabel:
        return (
            "compares only the largest output of a row with its first label: take "
            "keras.metrics.BinaryAccuracy("
            + ("threshold=0), since the outputs are logits" if outputs.is_logits else ")")
        )
    if kind == "binary_accuracy" or (kind in ACCURACIES and outputs.width == 1):
        return _trap_of_accuracy(metric, outputs)
    if kind in CROSSENTROPIES or kind == "crossentropy" or kind == "auc":
        return _trap_of_logits(metric, kind, outputs)
    if kind in (*OF_THRESHOLDS, *AREAS):
        return _trap_of_thresholds(metric, kind, outputs)
    if kind in IOUS and getattr(metric, "sparse_y_pred", False):
        return "rounds the outputs down to whole numbers, so nearly all count as class 0: take " + (
            "keras.metrics.BinaryIoU()" if outputs.width == 1 else "sparse_y_pred=False"
        )
    return None


def _trap_of_score(metric: Any, outputs: _Outputs) -> str | None:
    if getattr(metric, "threshold", None) is None and outputs.width == 1:
        return (
            "takes the largest output as the class, and with one output that is always the same class, so it "
            "has the same value for every model: give it threshold=0.5"
            + (", and end the model with the activation sigmoid" if outputs.is_logits else "")
        )
    if getattr(metric, "threshold", None) is None and outputs.is_multilabel:
        return "counts only the largest output of a row, which may have several labels: give it threshold=0.5"
    if getattr(metric, "threshold", None) is not None and outputs.is_logits:
        return "compares logits with a probability: end the model with its activation, sigmoid or softmax"
    return None


def _trap_of_accuracy(metric: Any, outputs: _Outputs) -> str | None:
    if outputs.is_one_hot and outputs.width > 1 and not outputs.is_multilabel:
        share = 1 - 1 / outputs.width
        return (
            "counts each output for itself, so a model that finds no class has "
            f'{share:.2f}: take "accuracy", which compares the largest output'
        )
    if outputs.is_logits and getattr(metric, "threshold", 0.5) > 0:
        return "compares logits with the threshold 0.5: take keras.metrics.BinaryAccuracy(threshold=0)"
    return None


def _trap_of_logits(metric: Any, kind: str, outputs: _Outputs) -> str | None:
    takes_logits = _takes_logits(metric)
    if takes_logits and not outputs.is_logits:
        return (
            "takes logits (from_logits=True), but the outputs are probabilities: leave out from_logits=True"
        )
    if outputs.is_logits and not takes_logits:
        wanted = f"{_class_of(metric, kind)}(from_logits=True)"
        return f"takes probabilities, but the outputs are logits: take {wanted}"
    if (
        kind == "auc"
        and outputs.is_one_hot
        and outputs.width > 1
        and not getattr(metric, "multi_label", True)
    ):
        return (
            "counts the outputs of all classes together: give it multi_label=True for the mean of the classes"
        )
    return None


def _trap_of_thresholds(metric: Any, kind: str, outputs: _Outputs) -> str | None:
    chosen = getattr(metric, "class_id", None) is not None or getattr(metric, "top_k", None) is not None
    if outputs.is_logits and not chosen and getattr(metric, "init_thresholds", None) is None:
        wanted = "give it thresholds=0" if kind in OF_THRESHOLDS else "end the model with its activation"
        return f"compares logits with probabilities such as 0.5: {wanted}"
    if outputs.is_one_hot and outputs.width > 1 and not outputs.is_multilabel and not chosen:
        return (
            "counts the outputs of all classes together, and a row without an output above 0.5 has no class: "
            'give it class_id for one class, or take keras.metrics.F1Score(average="macro")'
        )
    return None


def _takes_logits(metric: Any) -> bool:
    config = {} if isinstance(metric, str) else metric.get_config()
    return bool(config.get("from_logits", False))


def _class_of(metric: Any, kind: str) -> str:
    if not isinstance(metric, str):
        return f"keras.metrics.{type(metric).__name__}"
    names = {"auc": "AUC", "crossentropy": "BinaryCrossentropy"}
    return f"keras.metrics.{names.get(kind) or ''.join(part.title() for part in kind.split('_'))}"
