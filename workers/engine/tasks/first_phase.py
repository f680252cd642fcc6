"""Stores the result of a training's first phase in the second phase's checkpoints."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np

from workers.engine.arrays import Array
from workers.engine.training.checkpoint import Snapshot

FIND_PHASE, RETRAIN_PHASE = "find", "again"
"""The phases: find the best epoch; retrain on training and validation data. Part of the checkpoint format."""
RATES = "rates"
"""Name of the group of arrays with the first phase's learning rates. Part of the checkpoint format."""


@dataclass(frozen=True)
class FirstPhase:
    """The first phase's result. The second phase's checkpoints store it, so its field names must not change.

    Attributes:
        best_epoch: counted from 1.
        epochs: epochs trained.
        steps: training steps.
        score: objective at the best epoch.
        figures: the best epoch's metrics by name.
        rates: each epoch's learning rate.
        stopped_by: the measure whose patience ended it; empty if it ran all epochs.
    """

    best_epoch: int
    epochs: int
    steps: int
    score: float
    figures: dict[str, float]
    rates: tuple[float, ...] = ()
    stopped_by: str = ""

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """Return the result that a checkpoint in the second phase stores."""
        result = cls(**snapshot.state["extra"]["found"])
        # Checkpoints of older releases have the rates in `found`.
        rates = snapshot.arrays.get(RATES)
        return result if rates is None else replace(result, rates=tuple(rates[0].tolist()))

    def to_extra(self) -> dict[str, Any]:
        """Return the JSON values with which a checkpoint in the second phase stores this result."""
        return {"phase": RETRAIN_PHASE, "found": asdict(replace(self, rates=()))}

    def to_arrays(self) -> dict[str, list[Array]]:
        """Return the arrays that belong to `to_extra`. They are written once, JSON by every checkpoint."""
        return {RATES: [np.array(self.rates, np.float64)]}
