"""Decides which measure chooses a training's best epoch, and which one ends it early.

1. A trial's best epoch is the best one by the search's objective. A retraining's best epoch is the best
   one by `after.retrain.monitor`, which is the objective if it is not set.
2. Early stopping watches `early_stopping.monitor`. If that is not set, it watches the measure from rule 1.
3. Without a search there is no objective: `early_stopping.monitor` takes its place if it is measured on
   validation rows, and else the validation loss.
"""

from typing import NamedTuple, Self

from jobs.spec.sections import measures
from jobs.spec.sections.after import Retrain
from jobs.spec.sections.fit import EarlyStopping
from jobs.spec.sections.search import Direction, Objective

TRAINING_LOSS = "loss"
"""The only measure on training rows that early stopping may watch. It never chooses an epoch."""


class Monitor(NamedTuple):
    """A measure that each epoch has, and its better direction."""

    metric: str
    direction: Direction

    @classmethod
    def named(cls, metric: str, objective: Objective) -> Self:
        """Return a metric's monitor; the objective's own metric has the objective's direction."""
        same = metric == objective.metric
        return cls(metric, objective.direction if same else measures.direction(metric))


class Monitors(NamedTuple):
    """The measure that chooses the best epoch, and the one that early stopping watches."""

    best: Monitor
    stop: Monitor


def monitors_of_trial(objective: Objective, early: EarlyStopping | None) -> Monitors:
    """Return the measures for a search's trainings."""
    best = Monitor(objective.metric, objective.direction)
    return Monitors(best, _watched(best, objective, early))


def monitors_of_training(
    objective: Objective | None, retrain: Retrain | None, early: EarlyStopping | None
) -> Monitors:
    """Return the measures for a retraining or for a training without a search.

    Args:
        objective: the search's objective; None without a search.
        retrain: the retraining's settings; None if the model is trained once.
        early: the settings for early stopping.
    """
    monitored = retrain.monitor if retrain is not None else None
    if monitored is None and objective is None and early is not None and early.monitor != TRAINING_LOSS:
        monitored = early.monitor
    fallback = objective or Objective()
    best = Monitor.named(monitored or fallback.metric, fallback)
    return Monitors(best, _watched(best, fallback, early))


def _watched(best: Monitor, objective: Objective, early: EarlyStopping | None) -> Monitor:
    return best if early is None or early.monitor is None else Monitor.named(early.monitor, objective)
