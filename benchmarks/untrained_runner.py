"""Runs the real runner with trials that report all events but train nothing, to measure the bookkeeping."""

import os
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from jobs.kinds import KINDS
from jobs.messages.training import TrialTask
from workers.engine.report import Report
from workers.runner.__main__ import main

SECONDS = 0.02
"""Duration of each trial, which sleeps instead of training."""

NAMES = ("loss", "accuracy", "val_loss", "val_accuracy", "lr")


def run(task: TrialTask, report: Report) -> dict[str, Any]:
    """Report the events that `workers.engine.tasks.trial` reports for trials of one epoch."""
    for trial in task.trials:
        trial_report = report.for_trial(trial.number)
        trial_report.trial_started()
        for plan in trial.executions:
            trial_report.execution(plan.execution, "running")
            trial_report.log(f"execution {plan.execution} started: {trial.values}")
            time.sleep(SECONDS)
            metrics = {name: random.random() for name in NAMES}
            trial_report.metric(1, metrics, execution=plan.execution)
            folder = (
                Path(task.checkpoints) / f"trial-{trial.number}" / f"execution-{plan.execution}" / "step-1"
            )
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103
            trial_report.checkpoint(
                str(folder), step=1, epoch=1, manifest="0" * 64, size=1, execution=plan.execution
            )
            trial_report.progress(1, 1, "epochs")
            trial_report.log(
                f"execution {plan.execution}: val_loss {metrics['val_loss']:.4g} at epoch 1 of 1"
            )
            trial_report.execution(
                plan.execution,
                "completed",
                score=metrics["val_loss"],
                best_epoch=1,
                epochs=1,
                metrics=metrics,
            )
        trial_report.trial_finished()
    return {}


if __name__ == "__main__":
    KINDS["search"] = replace(KINDS["search"], engine="benchmarks.untrained_runner.run")
    main()
