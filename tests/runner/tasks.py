"""Builds tasks for runner tests."""

from pathlib import Path
from typing import Any

from jobs.messages.training import ExecutionPlan, TrainTask, TrialPlan, TrialTask
from tests.engine.helpers import profiled, spec_of

FAST = {"epochs": 6, "batch_size": 64, "learning_rate": 0.01}


def trial_task(folder: Path, dataset: Any, *, seeds: tuple[int, ...] = (1,), **spec: Any) -> TrialTask:
    """Return a trial task with one execution a seed; `fence`, `checkpoints` and `resume` go to the task.

    `trials` are what differs in each spec, such as `{"fit": …}`; without it there is one.
    """
    named: dict[str, Any] = {
        name: spec.pop(name) for name in ("fence", "checkpoints", "threads") if name in spec
    }
    resume = spec.pop("resume", ())
    trials = spec.pop("trials", ({},))
    spec = {"fit": FAST, "args": {"units": 8}, **spec}
    executions = tuple(
        ExecutionPlan(execution=i, seed=seed, checkpoints=resume) for i, seed in enumerate(seeds, 1)
    )
    return TrialTask(
        **{"folder": str(folder), "checkpoints": str(folder / "checkpoints"), **named},
        spec=spec_of(**spec), objective={"metric": "val_loss", "direction": "min"}, dataset=dataset,
        trials=tuple(
            TrialPlan(number=number, values={}, spec=spec_of(**{**spec, **changes}), executions=executions)
            for number, changes in enumerate(trials, 1)
        ),
        compile_cache=str(folder.parent / "compiled"),
    )  # fmt: skip


def train_task(folder: Path, dataset: Any, **spec: Any) -> TrainTask:
    """Return a training with a second phase; `retrain`, `fence` and others as given."""
    names = ("retrain", "fence", "checkpoints", "resume", "in_memory_bytes")
    named: dict[str, Any] = {name: spec.pop(name) for name in names if name in spec}
    return TrainTask(
        **{
            "folder": str(folder),
            "checkpoints": str(folder / "checkpoints"),
            "retrain": {"patience": 3, "epochs_cap": 6, "epochs_factor": 1.5},
            **named,
        },
        spec=spec_of(**{"fit": FAST, "args": {"units": 8}, **spec}),
        objective={"metric": "val_loss", "direction": "min"}, dataset=dataset, model_name="a1",
        compile_cache=str(folder.parent / "compiled"),
    )  # fmt: skip


__all__ = ["profiled", "train_task", "trial_task"]
