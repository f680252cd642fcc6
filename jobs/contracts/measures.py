"""Losses and metrics: their names, their tasks and their directions, without importing the engine.

A test compares these tables with the engine.
"""

from typing import Literal

from jobs.contracts.data import Task

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


def losses_for(task: Task) -> list[str]:
    """List the losses that fit `task`."""
    return [name for name, tasks in LOSSES.items() if task in tasks]


def metrics_for(task: Task) -> list[str]:
    """List the metrics that fit `task`."""
    return [name for name, (tasks, _) in METRICS.items() if task in tasks]


def direction(metric: str) -> Literal["min", "max"]:
    """Return the better direction of `metric`, with or without the prefix `val_`."""
    name = metric.removeprefix("val_")
    return METRICS[name][1] if name in METRICS else "min"


def validation_names(metrics: tuple[str, ...] | None, task: Task) -> list[str]:
    """List the metrics computed on validation data after each epoch, with the prefix `val_`."""
    return ["val_loss", *(f"val_{name}" for name in (metrics or DEFAULT_METRICS[task]))]
