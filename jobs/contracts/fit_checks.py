"""Checks the fit settings of a spec against the profile of its data set."""

import math
from collections.abc import Iterator

from jobs.contracts import measures
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.monitors import TRAINING_LOSS
from jobs.contracts.problems import Problem, escaped
from jobs.contracts.profile import Profile
from jobs.contracts.schedules import Constant, ReduceOnPlateau


def problems(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    """Yield the fit settings that cannot work with the data, if columns have the roles of the profile."""
    yield from _check_augmentation(spec, profile)
    yield from _check_class_weights(spec, profile)
    yield from _check_folds(spec, profile)


def monitor_problems(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    """Yield monitored metrics that are not measured for this task."""
    task = spec.data.task or profile.task
    watched = measures.validation_names(spec.fit.metrics, task)
    early, schedule, retrain = spec.fit.early_stopping, spec.fit.schedule, spec.after.retrain
    if early is not None and early.monitor not in (None, *watched, TRAINING_LOSS):
        yield _not_measured("/fit/early_stopping/monitor", str(early.monitor), watched)
    if retrain is not None and retrain.monitor not in (None, *watched):
        yield _not_measured("/after/retrain/monitor", str(retrain.monitor), watched)
    if isinstance(schedule, ReduceOnPlateau) and schedule.monitor not in (*watched, "loss"):
        yield _not_measured("/fit/schedule/monitor", schedule.monitor, watched)


def _not_measured(pointer: str, name: str, watched: list[str]) -> Problem:
    return Problem(pointer, f"{name!r} is not measured; use one of {', '.join(watched)}")


def _searched(spec: ExperimentSpec, field: str) -> Iterator[tuple[int, str]]:
    """Yield the index of each hyperparameter for a field or a part of it, and the path of the part."""
    for i, parameter in enumerate(spec.search.space if spec.search is not None else ()):
        name, _, part = parameter.name.partition("/")
        if name == field:
            yield i, part


def _check_augmentation(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    if profile.kind == "image":
        return
    sentence = "augmentation needs images, but the data are vectors"
    if spec.fit.augmentation is not None:
        yield Problem("/fit/augmentation", sentence)
    for i, _ in _searched(spec, "augmentation"):
        yield Problem(f"/search/space/{i}/name", sentence)


def _check_class_weights(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    rule, labels = spec.fit.class_weights, profile.class_labels
    searched = list(_searched(spec, "class_weights"))
    task = spec.data.task or profile.task
    if task not in ("binary", "multiclass"):
        sentence = f"class weights need a classification task, but the task is {task}"
        if rule not in (None, "none"):
            yield Problem("/fit/class_weights", sentence)
        yield from (Problem(f"/search/space/{i}/name", sentence) for i, _ in searched)
        return
    known = ", ".join(labels[:20])
    for label in rule if isinstance(rule, dict) else ():
        if label not in labels:
            yield Problem(
                f"/fit/class_weights/{escaped(label)}", f"no class {label!r}; the classes are {known}"
            )
    for i, label in searched:
        if label and label not in labels:
            yield Problem(f"/search/space/{i}/name", f"no class {label!r}; the classes are {known}")


def _check_folds(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    if spec.search is None or spec.search.evaluation.kind != "k_fold":
        return
    folds, split = spec.search.evaluation.folds, spec.data.split
    # Like the engine, keep at least one row for the test.
    rows = profile.rows - max(round(profile.rows * split.test), 1)
    # A group is never divided, so its rows are in one fold.
    groups = {column.name: column.distinct for column in profile.columns}.get(split.group or "")
    if folds > (groups or rows):
        what = f"groups in {split.group!r}" if groups else "rows besides the test rows"
        yield Problem(
            "/search/evaluation/folds", f"{folds} folds, but there are only {groups or rows} {what}"
        )


def warnings(spec: ExperimentSpec, profile: Profile | None) -> Iterator[Problem]:
    """Yield fit settings that are valid but probably not intended."""
    fit = spec.fit
    if fit.early_stopping is None and fit.epochs > 50:
        yield Problem(
            "/fit/early_stopping", f"without early stopping, every training runs all {fit.epochs} epochs"
        )
    if fit.early_stopping is not None and fit.early_stopping.patience >= fit.epochs:
        yield Problem(
            "/fit/early_stopping/patience",
            f"early stopping has no effect: patience must be below {fit.epochs} epochs",
        )
    yield from _loss_under_class_weights(spec)
    early, schedule = fit.early_stopping, fit.schedule
    if early is not None and isinstance(schedule, ReduceOnPlateau) and early.patience <= schedule.patience:
        sentence = "early stopping has no larger patience, so it ends the training before the rate is reduced"
        yield Problem("/fit/schedule/patience", sentence)
    if fit.schedule is not None and not isinstance(fit.schedule, Constant) and any(_searched(spec, "epochs")):
        sentence = "the schedule depends on the epochs, so trials of different lengths have different rates"
        yield Problem("/fit/schedule", sentence)
    if profile is not None:
        yield from _batch_warnings(spec, profile)


def _loss_under_class_weights(spec: ExperimentSpec) -> Iterator[Problem]:
    """Warn if the validation loss, which has no class weights, decides about a training that has them."""
    weighted = spec.fit.class_weights not in (None, "none") or any(_searched(spec, "class_weights"))
    if not weighted or spec.search is None:
        return
    early, retrain, objective = spec.fit.early_stopping, spec.after.retrain, spec.search.objective.metric
    why = "class weights change the probabilities, so val_loss may rise from the first epochs on"
    if early is not None and early.monitor == "val_loss" != objective:
        sentence = f"{why} while {objective} improves; leave it empty to stop by the objective"
        yield Problem("/fit/early_stopping/monitor", sentence)
    if retrain is not None and retrain.monitor == "val_loss" != objective:
        sentence = f"{why} while {objective} improves; leave it empty to choose the epoch by the objective"
        yield Problem("/after/retrain/monitor", sentence)


def _batch_warnings(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    fit, rows = spec.fit, training_rows(spec, profile)
    if fit.batch_size > rows:
        sentence = f"larger than the number of training rows (about {rows}): every epoch is one step"
        yield Problem("/fit/batch_size", sentence)
    steps = math.ceil(rows / fit.batch_size)
    if fit.steps_per_execution > steps:
        yield Problem("/fit/steps_per_execution", f"an epoch has only {steps} steps")


def training_rows(spec: ExperimentSpec, profile: Profile) -> int:
    """Return the approximate number of training rows; a split by column may differ."""
    split, search = spec.data.split, spec.search
    if search is not None and search.evaluation.kind == "k_fold":
        return round(profile.rows * (1 - split.test) * (1 - 1 / search.evaluation.folds))
    return round(profile.rows * (1 - split.validation - split.test))
