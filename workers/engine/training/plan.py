"""Defines a training before it runs, and its result: `Training` runs a `TrainingPlan`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.sections.pruning import Verdict
from workers.engine.arrays import Array, Floats
from workers.engine.data.batches import Batches
from workers.engine.data.rows import Rows
from workers.engine.evaluation.weighting import Weights
from workers.engine.models.losses import METRICS, compute_metrics, measure
from workers.engine.models.width_padding import Widths
from workers.engine.report import Report
from workers.engine.training.checkpointing import Checkpointer
from workers.engine.training.early_stopping import BestTracker
from workers.engine.training.hooks import EpochHook
from workers.engine.training.loops import Loop

PruningCheck = Callable[[int, Sequence[tuple[int, float]]], Verdict | None]
"""Takes the epochs completed and the best values so far, (epoch, value); returns a verdict to prune."""


@dataclass(frozen=True)
class EvaluationSet:
    """Rows on which loss and metrics are computed exactly after each epoch.

    Attributes:
        x: features, (rows, …).
        y: targets, (rows,) or (rows, outputs).
        loss: the loss name.
        metrics: the metric names.
        scale: the target's standard deviation, (outputs,), for regression; else None.
        batch_size: rows in a prediction batch.
        weights: row weights, (rows,); None if each counts once.
    """

    draws: ClassVar[int] = 10_000
    """Most samples of the rows that an interval is computed from."""

    x: Rows
    y: Array
    loss: str
    metrics: tuple[str, ...]
    scale: Array | None
    batch_size: int
    weights: Floats | None = None

    def measured_by(self, loop: Loop) -> dict[str, float]:
        """Return the loss and all metrics for these rows with a loop's newest weights, by name."""
        return self.measure(self.metrics, loop.predict(self.x, self.batch_size))

    def measure(self, metrics: Sequence[str], predictions: Array) -> dict[str, float]:
        """Return the loss and some metrics for predictions on these rows, by name."""
        return compute_metrics(self.loss, metrics, self.y, predictions, self.scale, self.weights)

    def computes(self, name: str) -> bool:
        """Return whether `score` computes the loss or metric with this name."""
        return name == "loss" or name in METRICS

    def score(self, name: str, y: Array, p: Array, weights: Weights) -> float:
        """Return the loss or one metric for the saved model's predictions on any rows.

        Args:
            name: `loss`, or a metric.
            y: targets, (rows,) or (rows, outputs).
            p: predictions, (rows, outputs).
            weights: row weights; None if each counts once.
        """
        return measure(name, self.loss, y, p, self.scale, weights)


@dataclass
class TrainingPlan:
    """Defines one training: its model and data, when it ends, and what observes or changes it.

    Attributes:
        model: a compiled model.
        batches: the training data.
        validation: None if all rows are used for training.
        epochs: maximum epochs.
        best: chooses the best epoch, whose weights the model gets in the end; None keeps the last weights.
        stop: stops the training early; None runs all epochs.
        checkpointer: writes the checkpoints.
        report: receives metrics and returns requests.
        on_progress: called with the epochs completed, a fraction within an epoch.
        execution: the execution number; None outside a search.
        first_step: steps before this training, added to its checkpoints' steps.
        label: prefixes metric names, so that a job's two phases draw two curves.
        pruning_check: called after each epoch but the last; a verdict ends the training.
        loop: runs the epochs; None uses Keras' `fit`.
        widths: each variable's intended shape, if the model was built wider (see `width_padding`).
        hook: acts between epochs.
        extra: the caller's JSON state, stored in each checkpoint.
        extra_arrays: the caller's arrays, stored in each checkpoint.
        mesh: the design of the devices among which the model is divided, whose speed is measured.
    """

    model: Any
    batches: Batches
    validation: EvaluationSet | None
    epochs: int
    best: BestTracker | None
    stop: BestTracker | None
    checkpointer: Checkpointer
    report: Report
    on_progress: Callable[[float], None]
    execution: int | None = None
    first_step: int = 0
    label: str = ""
    pruning_check: PruningCheck | None = None
    loop: Loop | None = None
    widths: Widths = field(default_factory=Widths)
    hook: EpochHook = field(default_factory=EpochHook)
    extra: dict[str, Any] = field(default_factory=dict)
    extra_arrays: dict[str, list[Array]] = field(default_factory=dict)
    mesh: MeshSpec | None = None


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training that has ended.

    Attributes:
        epochs: epochs trained.
        best_epoch: counted from 1.
        steps: training steps.
        metrics: the best epoch's metrics by name.
        history: every epoch's metrics.
        seconds: duration, including earlier runs that it resumed from.
        is_exhausted: it stopped early, so more epochs would not be used.
        best: (epoch, value) for each epoch that improved the tracked metric.
        verdict: why it was pruned; None if it was not.
        keeps_last: `best_epoch` is the last one, since the best epoch's weights are not known.
    """

    epochs: int
    best_epoch: int
    steps: int
    metrics: dict[str, float]
    history: list[dict[str, float]]
    seconds: float
    is_exhausted: bool = False
    best: tuple[tuple[int, float], ...] = ()
    verdict: Verdict | None = None
    keeps_last: bool = False
