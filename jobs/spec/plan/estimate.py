"""Estimates an experiment's duration from earlier trainings: an upper bound and a likely value."""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from jobs.spec.experiment import ExperimentSpec


class PastTraining(NamedTuple):
    """A finished training with the same data and template.

    Attributes:
        epochs: how many epochs it trained.
        best_epoch: the best epoch, from 1.
        patience: its patience in early stopping; None: no early stopping.
    """

    epochs: int
    best_epoch: int
    patience: int | None


class History(NamedTuple):
    """Earlier trainings. `where` names their origin, for example "this experiment"."""

    trainings: Sequence[PastTraining]
    seconds_per_epoch: float
    where: str


class Estimate(NamedTuple):
    """Likely epochs, and device-hours: `hours` is an upper bound. None if there are no earlier trainings."""

    hours: float | None
    likely_epochs: int | None
    likely_hours: float | None
    sentence: str


def estimate_time(
    spec: ExperimentSpec, executions: int, most_epochs: int, history: History | None
) -> Estimate:
    """Estimate an experiment's epochs and device hours.

    Args:
        spec: the experiment.
        executions: how many trainings its search runs; 1 without a search.
        most_epochs: the total epochs without early stopping.
        history: earlier trainings; None if there are none.
    """
    if history is None:
        same = {"script": "script", "code": "data set and code"}.get(spec.model.kind, "data set and template")
        return Estimate(None, None, None, f"No estimate yet: no earlier training has the same {same}.")
    if spec.model.info.trains_itself:
        return _estimate_script(executions, history)
    likely = min(round(_likely_epochs(spec, executions, history.trainings)), most_epochs)
    # Simulated devices share the cores of one machine, so they count as one.
    devices = spec.mesh.size() if spec.mesh is not None and spec.mesh.simulate is None else 1
    hours_per_epoch = history.seconds_per_epoch * devices / 3600
    return Estimate(
        round(most_epochs * hours_per_epoch, 4),
        likely,
        round(likely * hours_per_epoch, 4),
        _sentence(spec, history),
    )


def _estimate_script(executions: int, history: History) -> Estimate:
    """Estimate a script's runs from earlier runs. Only these show the number of steps."""
    steps = fmean(past.epochs for past in history.trainings)
    likely = round(executions * steps)
    hours = round(likely * history.seconds_per_epoch / 3600, 4)
    runs = "1 earlier run" if len(history.trainings) == 1 else f"{len(history.trainings)} earlier runs"
    pace = f"{steps:.3g} steps each at {history.seconds_per_epoch:.2g} s"
    return Estimate(hours, likely, hours, f"Based on {runs} in {history.where}: {pace}.")


def epochs_of_one(spec: ExperimentSpec, past: PastTraining) -> float:
    """Return how many epochs a past training would run with this spec's epochs and early stopping.

    A training that ended before its patience was exhausted might have improved further; it counts as all
    epochs.
    """
    cap, stopping = spec.fit.epochs, spec.fit.early_stopping
    if stopping is None:
        return cap
    without_improvement = past.epochs - past.best_epoch
    # With a smaller patience than now, the past training may have ended before this one would.
    least = stopping.patience if past.patience is None else min(stopping.patience, past.patience)
    return min(past.best_epoch + stopping.patience, cap) if without_improvement >= least else cap


def _likely_epochs(spec: ExperimentSpec, executions: int, trainings: Sequence[PastTraining]) -> float:
    retrain = spec.after.retrain
    epochs_of_training = fmean(epochs_of_one(spec, past) for past in trainings)
    if retrain is None:
        return executions * epochs_of_training
    best = fmean(past.best_epoch for past in trainings)
    again = best * retrain.epochs_factor if retrain.include_validation else 0.0
    # The first phase trains until its patience ends; the second repeats the training on more rows.
    final = min(best + retrain.patience, retrain.epochs_cap) + again
    return executions * epochs_of_training + retrain.top * final if spec.search is not None else final


def _sentence(spec: ExperimentSpec, history: History) -> str:
    count = len(history.trainings)
    runs = "1 earlier training" if count == 1 else f"{count} earlier trainings"
    needed = fmean(past.epochs for past in history.trainings)
    pace = f"{needed:.3g} epochs each at {history.seconds_per_epoch:.2g} s"
    rule = "" if spec.fit.early_stopping is not None else "; without early stopping, each trains all epochs"
    return f"Based on {runs} in {history.where}: {pace}{rule}."
