"""Reports a script's metrics to Trainyard. Without Trainyard, the lines are simply printed.

Copy this file beside a script to use it elsewhere; in a Trainyard run it can always be imported. It needs
Python 3.8 or newer and no other package.

    import trainyard_report

    for epoch in range(1, 11):
        ...
        trainyard_report.report(epoch, loss=0.3, val_accuracy=0.9)

    trainyard_report.output("model.keras")   # a path in the folder whose files are kept

Licence: as you like. You may copy, change and pass on this file without conditions.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

__all__ = ["data", "output", "report", "seed"]


def report(step: int, **metrics: Any) -> None:
    """Print a step's metrics as one JSON line.

    Args:
        step: a whole number that grows, such as the epoch.
        metrics: numbers by name. NumPy, JAX and PyTorch numbers are converted.
    """
    values = {name: float(value) for name, value in metrics.items()}
    # One write, so that lines of several threads do not mix.
    sys.stdout.write(json.dumps({"step": int(step), "metrics": values}) + "\n")
    sys.stdout.flush()


def output(name: str = "") -> str:
    """Return a file's path in the folder whose files are kept; without Trainyard, in `output`."""
    folder = Path(os.environ.get("TRAINYARD_OUTPUT") or "output")
    path = folder / name
    (path.parent if name else path).mkdir(parents=True, exist_ok=True)
    return str(path)


def data() -> "str | None":
    """Return the path to the data as Parquet or NPZ; None if the experiment has none."""
    return os.environ.get("TRAINYARD_DATA") or None


def seed(default: int = 0) -> int:
    """Return this run's seed. Each execution of a trial has another one."""
    return int(os.environ.get("TRAINYARD_SEED") or default)
