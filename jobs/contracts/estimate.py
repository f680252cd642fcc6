"""How long an experiment takes: at most, and likely, by what earlier trainings like it needed."""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from jobs.contracts.experiment import ExperimentSpec


class Past(NamedTuple):
    """One finished training on the same data with the same template.

    Attributes:
        epochs: that it ran.
        best_epoch: counted from 1.
        patience: of its early stopping; None without.
    """

    epochs: int
    best_epoch: int
    patience: int | None


class History(NamedTuple):
    """What earlier trainings tell. `where` says whose they are, as in "this experiment"."""

    trainings: Sequence[Past]
    seconds_per_epoch: float
    where: str


class Estimate(NamedTuple):
    """Epochs in all and device-hours, at most and likely; None while nothing like it has run."""

    hours: float | None
    likely_epochs: int | None
    likely_hours: float | None
    sentence: str


def of(spec: ExperimentSpec, executions: int, most_epochs: int, history: History | None) -> Estimate:
    """Estimate an experiment.

    Args:
        spec: what is to run.
        executions: trainings of its search, 1 without one.
        most_epochs: if nothing stops early.
        history: of earlier trainings; None if there is none.
    """
    if history is None:
        return Estimate(None, None, None, "No estimate yet: nothing like it has run on this data set here.")
    likely = min(round(_likely(spec, executions, history.trainings)), most_epochs)
    devices = spec.mesh.size() if spec.mesh is not None and spec.mesh.simulate is None else 1
    an_epoch = history.seconds_per_epoch * devices / 3600
    return Estimate(
        round(most_epochs * an_epoch, 4), likely, round(likely * an_epoch, 4), _rests_on(spec, history)
    )


def epochs_of_one(spec: ExperimentSpec, past: Past) -> float:
    """Return how many epochs a past training would run under this spec's cap and early stopping.

    One that was cut off before its patience ran out might have gone on improving: it counts as the cap.
    """
    cap, stopping = spec.fit.epochs, spec.fit.early_stopping
    if stopping is None:
        return cap
    watched = past.epochs - past.best_epoch
    least = stopping.patience if past.patience is None else min(stopping.patience, past.patience)
    return min(past.best_epoch + stopping.patience, cap) if watched >= least else cap


def _likely(spec: ExperimentSpec, executions: int, trainings: Sequence[Past]) -> float:
    retrain = spec.after.retrain
    each = fmean(epochs_of_one(spec, past) for past in trainings)
    if retrain is None:
        return executions * each
    best = fmean(past.best_epoch for past in trainings)
    again = best * retrain.epochs_factor if retrain.include_validation else 0.0
    final = min(best + retrain.patience, retrain.epochs_cap) + again
    return executions * each + retrain.top * final if spec.search is not None else final


def _rests_on(spec: ExperimentSpec, history: History) -> str:
    count = len(history.trainings)
    runs = "1 earlier training" if count == 1 else f"{count} earlier trainings"
    needed = fmean(past.epochs for past in history.trainings)
    pace = f"{needed:.3g} epochs each at {history.seconds_per_epoch:.2g} s"
    rule = "" if spec.fit.early_stopping is not None else "; without early stopping each runs to its cap"
    return f"Likely, by {runs} in {history.where}: {pace}{rule}."
