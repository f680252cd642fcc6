"""Lists the losses and metrics with their tasks and directions, without importing the engine.

A test compares these tables with the engine.
"""

from typing import Literal

from jobs.spec.sections.data import Task

CLASSES: tuple[Task, ...] = ("binary", "multiclass", "multilabel")
TWO_SIDED: tuple[Task, ...] = ("binary", "multilabel")

LOSSES: dict[str, tuple[Task, ...]] = {
    "sparse_categorical_crossentropy": ("multiclass",),
    "binary_crossentropy": TWO_SIDED,
    "mse": ("regression",),
    "mae": ("regression",),
    "huber": ("regression",),
    "log_cosh": ("regression",),
}
METRICS: dict[str, tuple[tuple[Task, ...], Literal["min", "max"]]] = {
    "accuracy": (CLASSES, "max"),
    "top_5_accuracy": (("multiclass",), "max"),
    "auc": (TWO_SIDED, "max"),
    "precision": (TWO_SIDED, "max"),
    "recall": (TWO_SIDED, "max"),
    "mse": (("regression",), "min"),
    "mae": (("regression",), "min"),
    "rmse": (("regression",), "min"),
    "r2": (("regression",), "max"),
}
DEFAULT_METRICS: dict[Task, tuple[str, ...]] = {
    "multiclass": ("accuracy",),
    "binary": ("accuracy", "auc"),
    "multilabel": ("accuracy", "auc"),
    "regression": ("mse", "mae", "r2"),
}

LONGEST_NAME = 200
"""The most characters that are kept of a metric's name."""

LARGER_IS_BETTER = frozenset({"acc", "accuracy", "auc", "precision", "recall", "f1", "iou", "score", "r2"})
"""Words in metric names that show that larger values are better."""
EVALUATION_METRICS: dict[str, Literal["min", "max"]] = {
    "accuracy": "max",
    "exact_match": "max",
    "log_loss": "min",
    "f1_macro": "max",
    "ece": "min",
    "roc_auc": "max",
    "rmse": "min",
    "mae": "min",
    "r2": "max",
}
"""The metrics in an evaluation on test rows, with their better direction."""


def primary_metric(task: Task) -> tuple[str, Literal["min", "max"]]:
    """Return the metric that compares models for a task, and its better direction."""
    return ("rmse", "min") if task == "regression" else ("accuracy", "max")


def losses_for(task: Task) -> list[str]:
    """List the losses that fit `task`."""
    return [name for name, tasks in LOSSES.items() if task in tasks]


def metrics_for(task: Task) -> list[str]:
    """List the metrics that fit `task`."""
    return [name for name, (tasks, _) in METRICS.items() if task in tasks]


def direction(metric: str) -> Literal["min", "max"]:
    """Return the better direction for `metric`, with or without the prefix `val_`."""
    name = metric.removeprefix("val_")
    if name in METRICS:
        return METRICS[name][1]
    # Losses, and metrics that code of users names.
    return "min" if LARGER_IS_BETTER.isdisjoint(name.lower().split("_")) else "max"


def is_known(metric: str) -> bool:
    """Return whether `metric`, with or without the prefix `val_`, is a loss or in the metrics table."""
    return metric.removeprefix("val_") in {"loss", *METRICS}


def validation_names(metrics: tuple[str, ...] | None, task: Task) -> list[str]:
    """List the metrics computed on validation data after each epoch, with the prefix `val_`."""
    return ["val_loss", *(f"val_{name}" for name in (metrics or DEFAULT_METRICS[task]))]


TEST_METRICS: dict[str, tuple[tuple[Task, ...], Literal["min", "max"]]] = {
    "accuracy": (CLASSES, "max"),
    "roc_auc": (TWO_SIDED, "max"),
    "log_loss": (CLASSES, "min"),
    "f1_macro": (CLASSES, "max"),
    "precision": (TWO_SIDED, "max"),
    "recall": (TWO_SIDED, "max"),
    "top_5_accuracy": (("multiclass",), "max"),
    "rmse": (("regression",), "min"),
    "mse": (("regression",), "min"),
    "mae": (("regression",), "min"),
    "r2": (("regression",), "max"),
}
"""The metrics that gates compare on test rows, named as in evaluations."""


def known_direction(metric: str) -> Literal["min", "max"] | None:
    """Return the better direction for a metric on test rows; None if it is unknown."""
    if metric in TEST_METRICS:
        return TEST_METRICS[metric][1]
    return EVALUATION_METRICS.get(metric)


def gate_metrics_for(task: Task) -> list[str]:
    """List the metrics that gates can compare for `task`."""
    return [name for name, (tasks, _) in TEST_METRICS.items() if task in tasks]


EVALUATED_AS = {"auc": "roc_auc"}
"""The names in evaluations for metrics that trainings report under another name."""


def gate_metric(objective: str, task: Task) -> str:
    """Return the metric on test rows that corresponds to a search's objective.

    A regression's loss is measured in units of the target's standard deviation, and some losses are not
    reported in evaluations: the root mean squared error takes its place.
    """
    name = objective.removeprefix("val_")
    if name == "loss":
        return "rmse" if task == "regression" else "log_loss"
    name = EVALUATED_AS.get(name, name)
    return name if name in gate_metrics_for(task) else primary_metric(task)[0]
