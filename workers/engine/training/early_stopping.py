"""Watches one figure over epochs: which epoch was best, and whether to stop waiting for better."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass
class Watch:
    """Best value so far and how long ago. All of its state is plain JSON, so a resume goes on equal.

    Attributes:
        metric: name as in the epoch's figures, say `val_loss`.
        patience: epochs without improvement after which `exhausted` holds; None never.
        best_epoch: counted from 1; 0 before the first finite value.
    """

    metric: str
    direction: Literal["min", "max"]
    patience: int | None = None
    min_delta: float = 0.0
    best: float | None = None
    best_epoch: int = 0
    wait: int = 0

    def update(self, epoch: int, value: float) -> bool:
        """Take the value of `epoch`; return whether it is the best so far."""
        if math.isfinite(value) and (self.best is None or self._beats(value, self.best)):
            self.best, self.best_epoch, self.wait = value, epoch, 0
            return True
        self.wait += 1
        return False

    def _beats(self, value: float, best: float) -> bool:
        gain = best - value if self.direction == "min" else value - best
        return gain > self.min_delta

    @property
    def exhausted(self) -> bool:
        """Say whether patience has run out."""
        return self.patience is not None and self.wait >= max(self.patience, 1)

    def state(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return asdict(self)

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned; what was asked for (metric, patience) stays as it is now."""
        self.best, self.best_epoch, self.wait = state["best"], state["best_epoch"], state["wait"]
