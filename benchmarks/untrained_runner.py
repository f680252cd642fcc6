"""The real runner, whose trials say all that a trial says and train nothing: what is left is bookkeeping."""

import os
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from jobs.kinds import KINDS
from jobs.kinds.search.payload import TrialTask
from workers.engine.report import Report
from workers.runner.__main__ import main

SECONDS = 0.02
"""How long each trial pretends to work, asleep."""

NAMES = ("loss", "accuracy", "val_loss", "val_accuracy", "lr")


def run(task: TrialTask, report: Report) -> dict[str, Any]:
    """Say of each trial what `workers.engine.tasks.trial` says of one that trains for one epoch."""
    for trial in task.trials:
        words = report.of_trial(trial.number)
        words.trial_begins()
        for plan in trial.executions:
            words.execution(plan.execution, "running")
            words.log(f"execution {plan.execution} begins: {trial.values}")
            time.sleep(SECONDS)
            figures = {name: random.random() for name in NAMES}
            words.metric(1, figures, execution=plan.execution)
            folder = (
                Path(task.checkpoints) / f"trial-{trial.number}" / f"execution-{plan.execution}" / "step-1"
            )
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103
            words.checkpoint(
                str(folder), step=1, epoch=1, manifest="0" * 64, size=1, execution=plan.execution
            )
            words.progress(1, 1, "epochs")
            words.log(f"execution {plan.execution}: val_loss {figures['val_loss']:.4g} at epoch 1 of 1")
            words.execution(
                plan.execution,
                "completed",
                score=figures["val_loss"],
                best_epoch=1,
                epochs=1,
                metrics=figures,
            )
        words.trial_ends()
    return {}


if __name__ == "__main__":
    KINDS["search"] = replace(KINDS["search"], engine="benchmarks.untrained_runner.run")
    main()
