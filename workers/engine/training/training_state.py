"""Converts a training's state to the snapshot that a checkpoint stores, and back."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jobs.spec.sections.pruning import Verdict
from workers.engine.arrays import Array
from workers.engine.models.variables import assign, held
from workers.engine.training import checkpoint
from workers.engine.training.checkpoint import Snapshot
from workers.engine.training.early_stopping import BestTracker
from workers.engine.training.plan import TrainingPlan

WINDOWS = "windows"
"""Key of the state of a checkpoint: the parts of the file, if the current epoch reads it in windows.

See `Batches.parts`. It is absent if the rows of the epoch are in any order.
"""


@dataclass
class TrainingState:
    """A training's progress, beside its variables' values.

    Attributes:
        epoch: epochs completed.
        batch: batches completed in the epoch after them.
        history: each epoch's metrics.
        improvements: (epoch, value) for each epoch that improved the tracked metric.
        best_weights: the best epoch's weights, without padding; empty before it or without a tracker. For a
            model on several devices they are views of a file.
        epoch_metrics: the metrics' variables after `batch` batches in an epoch; empty between epochs.
        verdict: why the training was pruned; None if it was not.
        seconds_before: how long the runs took that were resumed from.
        started: when this run began, by the monotonic clock.
    """

    epoch: int = 0
    batch: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    improvements: list[tuple[int, float]] = field(default_factory=list)
    best_weights: list[Array] = field(default_factory=list)
    epoch_metrics: list[Array] = field(default_factory=list)
    verdict: Verdict | None = None
    seconds_before: float = 0.0
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """The training's duration, including the runs that were resumed from."""
        return self.seconds_before + time.monotonic() - self.started


def take_snapshot(plan: TrainingPlan, state: TrainingState, step_mode: str) -> Snapshot:
    """Return a checkpoint's contents.

    Args:
        plan: the training's plan; its model's variables must be up to date.
        state: the training's state.
        step_mode: how its loop runs steps.
    """
    arrays = {
        checkpoint.WEIGHTS: narrow_values(plan, plan.model.variables),
        checkpoint.OPTIMIZER: narrow_values(plan, plan.model.optimizer.variables),
    }
    return snapshot_of(plan, state, step_mode, arrays)


def snapshot_of(
    plan: TrainingPlan, state: TrainingState, step_mode: str, arrays: dict[str, list[Array]]
) -> Snapshot:
    """Return a checkpoint's contents with these model arrays; see `take_snapshot`."""
    parts = plan.batches.parts_of(state.epoch + 1)
    # Names of groups and keys are part of the checkpoint format. `way` is the step mode; `best` is the best
    # epoch's weights among the arrays, and the tracker's state below.
    return Snapshot(
        arrays={
            **arrays,
            "metrics": state.epoch_metrics,
            checkpoint.BEST: state.best_weights,
            **plan.extra_arrays,
        },
        state={
            "epoch": state.epoch,
            "batch": state.batch,
            "best": None if plan.best is None else plan.best.state(),
            "stop": None if plan.stop is None else plan.stop.state(),
            "hook": plan.hook.state(),
            "seconds": state.seconds,
            "seed": plan.batches.seed,
            "way": step_mode,
            "verdict": None if state.verdict is None else state.verdict.model_dump(),
            "extra": plan.extra,
            **({} if parts is None else {WINDOWS: parts.tolist()}),
        },
        history=state.history,
        lasting=frozenset({checkpoint.BEST, *plan.extra_arrays}),
    )


def restore_snapshot(plan: TrainingPlan, snapshot: Snapshot, *, started: float) -> TrainingState:
    """Write a snapshot to the plan's model, trackers and hook; return the training's state.

    Args:
        plan: the training's plan.
        snapshot: its contents are used, not copied.
        started: when this run began, by the monotonic clock.

    Raises:
        BadCheckpoint: the snapshot belongs to another model.
    """
    assign_narrow(plan, plan.model.variables, snapshot.arrays[checkpoint.WEIGHTS])
    assign_narrow(plan, plan.model.optimizer.variables, snapshot.arrays[checkpoint.OPTIMIZER])
    return restore_progress(plan, snapshot, started=started)


def restore_progress(plan: TrainingPlan, snapshot: Snapshot, *, started: float) -> TrainingState:
    """Write a snapshot to the plan's trackers and hook; return the training's state."""
    stored = snapshot.state
    if plan.best is not None and stored["best"] is not None:
        plan.best.restore(stored["best"])
    if plan.stop is not None and stored["stop"] is not None:
        plan.stop.restore(stored["stop"])
    if stored.get("hook"):
        plan.hook.restore(stored["hook"])
    return TrainingState(
        epoch=stored["epoch"],
        batch=stored["batch"],
        history=snapshot.history,
        # Checkpoints hold only the history.
        improvements=_improvements(plan.best, snapshot.history),
        best_weights=snapshot.arrays[checkpoint.BEST],
        epoch_metrics=snapshot.arrays["metrics"],
        # A pruned training stays pruned, whatever others have reached since.
        verdict=Verdict.model_validate(stored["verdict"]) if stored.get("verdict") else None,
        seconds_before=stored["seconds"],
        started=started,
    )


def narrow_values(plan: TrainingPlan, variables: Sequence[Any]) -> list[Any]:
    """Return the variables' values without padding, so that a training can be resumed at any width.

    Those on several devices are not copied: use them before the next step.
    """
    return plan.widths.narrow(variables, held(variables))


def assign_narrow(plan: TrainingPlan, variables: Sequence[Any], arrays: list[Array]) -> None:
    """Assign values without padding to the variables.

    Raises:
        BadCheckpoint: the shapes differ, so the arrays belong to another model.
    """
    assign(variables, plan.widths.widen(variables, arrays))


def _improvements(best: BestTracker | None, history: Sequence[dict[str, float]]) -> list[tuple[int, float]]:
    """Return (epoch, value) for each epoch in the history that improved the tracked metric."""
    if best is None:
        return []
    tracker = BestTracker(best.metric, best.direction)
    tracked = ((epoch, metrics[tracker.metric]) for epoch, metrics in enumerate(history, start=1))
    return [(epoch, value) for epoch, value in tracked if tracker.update(epoch, value)]
