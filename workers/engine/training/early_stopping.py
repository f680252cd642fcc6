"""Tracks one metric over epochs: its best epoch, and whether patience for an improvement has run out."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass
class BestTracker:
    """A metric's best value and the epochs since. Its state is plain JSON, so it survives a resume.

    Attributes:
        metric: the metric's name, `val_loss` for example.
        direction: whether smaller or larger values are better.
        patience: epochs without improvement after which `is_exhausted` is true; None for no limit.
        min_delta: an improvement must exceed this.
        best: best value so far.
        best_epoch: counted from 1; 0 before the first finite value.
        wait: epochs since the best one.
    """

    metric: str
    direction: Literal["min", "max"]
    patience: int | None = None
    min_delta: float = 0.0
    best: float | None = None
    best_epoch: int = 0
    wait: int = 0

    def update(self, epoch: int, value: float) -> bool:
        """Record the value for `epoch`; return whether it is the best so far."""
        gain = math.inf
        if self.best is not None:
            gain = self.best - value if self.direction == "min" else value - self.best
        # An infinite value would count as the best one in one of the directions.
        if math.isfinite(value) and gain > self.min_delta:
            self.best, self.best_epoch, self.wait = value, epoch, 0
            return True
        self.wait += 1
        return False

    @property
    def is_exhausted(self) -> bool:
        """Whether patience has run out."""
        # As in Keras, patience 0 stops at the first epoch without improvement, not at once.
        return self.patience is not None and self.wait >= max(self.patience, 1)

    def state(self) -> dict[str, Any]:
        """Return all attributes as JSON values, for a checkpoint."""
        return asdict(self)

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the progress from `state()`. Settings such as `patience` keep their current values."""
        self.best, self.best_epoch, self.wait = state["best"], state["best_epoch"], state["wait"]
