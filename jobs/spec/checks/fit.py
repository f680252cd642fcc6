"""Checks a spec's fit settings against its data set's profile."""

import math
from collections.abc import Iterator

from jobs.spec.data.profile import Profile
from jobs.spec.data.split_roles import named_part_rows, resolved
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem, escaped, warning
from jobs.spec.sections import measures
from jobs.spec.sections.fit import EarlyStopping
from jobs.spec.sections.monitors import TRAINING_LOSS
from jobs.spec.sections.schedules import Constant, ReduceOnPlateau


def problems(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    """Yield the fit settings that cannot work with the data, if columns have the profile's roles."""
    yield from _check_augmentation(spec, profile)
    yield from _check_class_weights(spec, profile)
    yield from _check_folds(spec, profile)


def monitor_problems(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    """Yield monitored metrics that are not measured for this task."""
    if spec.model.info.own_names:
        # The code may name its metrics.
        return
    task = spec.required_data.task or profile.task
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
    """Yield each hyperparameter that sets a field: its index and the path inside the field."""
    for i, parameter in enumerate(spec.search.space if spec.search is not None else ()):
        name, _, part = (spec.model.info.fit_field(parameter.name) or "").partition("/")
        if name == field:
            yield i, part


def _check_augmentation(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    if profile.kind == "image":
        return
    sentence = f"augmentation needs images, but the data are {profile.kind}s"
    if spec.fit.augmentation is not None:
        yield Problem("/fit/augmentation", sentence)
    for i, _ in _searched(spec, "augmentation"):
        yield Problem(f"/search/space/{i}/name", sentence)


def _check_class_weights(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    rule, labels = spec.fit.class_weights, profile.class_labels
    searched = list(_searched(spec, "class_weights"))
    task = spec.required_data.task or profile.task
    if task not in ("binary", "multiclass"):
        sentence = f"class weights need a classification task, but the task is {task}"
        if rule not in (None, "none"):
            yield Problem("/fit/class_weights", sentence)
        yield from (Problem(f"/search/space/{i}/name", sentence) for i, _ in searched)
        return
    classes = ", ".join(labels[:20])
    for label in rule if isinstance(rule, dict) else ():
        if label not in labels:
            yield Problem(
                f"/fit/class_weights/{escaped(label)}", f"no class {label!r}; the classes are {classes}"
            )
    for i, label in searched:
        if label and label not in labels:
            yield Problem(f"/search/space/{i}/name", f"no class {label!r}; the classes are {classes}")


def _check_folds(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    if spec.search is None or spec.search.evaluation.kind != "k_fold":
        return
    folds, split = spec.search.evaluation.folds, resolved(spec.required_data.split, profile)
    named = named_part_rows(split, profile)
    # Like the engine, keep at least one row for the test.
    rows = profile.rows - (max(round(profile.rows * split.test), 1) if named is None else named[2])
    # A group is never divided, so its rows are in one fold.
    groups = {column.name: column.distinct for column in profile.columns}.get(split.group or "")
    if folds > (groups or rows):
        what = f"groups in {split.group!r}" if groups else "rows besides the test rows"
        yield Problem(
            "/search/evaluation/folds", f"{folds} folds, but there are only {groups or rows} {what}"
        )


def warnings(spec: ExperimentSpec, profile: Profile | None) -> Iterator[Problem]:
    """Yield fit settings that are valid but probably not intended."""
    yield from _early_stopping_warnings(spec)
    yield from _loss_under_class_weights(spec)
    yield from _schedule_warnings(spec)
    if profile is not None and spec.model.info.by_gradient:
        yield from _batch_warnings(spec, profile)


def _early_stopping_warnings(spec: ExperimentSpec) -> Iterator[Problem]:
    early, epochs = spec.fit.early_stopping, spec.fit.epochs
    if early is None and epochs > 50:
        yield warning(
            "/fit/early_stopping",
            f"without early stopping every training runs all {epochs} epochs, even if it stops improving",
            "Add early stopping to save this time",
        )
    if early is not None and early.patience >= epochs:
        yield warning(
            "/fit/early_stopping/patience",
            f"early stopping has no effect: its patience of {early.patience} is not below {epochs} epochs",
            f"Set the patience below {epochs}, or train for more epochs",
        )
    if early is not None:
        yield from _overruled_warnings(spec, early)


def _overruled_warnings(spec: ExperimentSpec, early: EarlyStopping) -> Iterator[Problem]:
    """Yield settings of early stopping that no training of a spec follows."""
    retrain, has_trials = spec.after.retrain, spec.search is not None
    if not early.restore_best and (retrain is not None or (has_trials and not spec.after.has_steps())):
        yield warning(
            "/fit/early_stopping/restore_best",
            "this has no effect: trials and retrainings always keep the weights of their best epoch",
            "Leave it on, or train without a search and a retraining to keep those of the last epoch",
        )
    default = EarlyStopping().patience
    if retrain is not None and not has_trials and early.patience not in (default, retrain.patience):
        yield warning(
            "/fit/early_stopping/patience",
            f"this has no effect: a retraining waits for {retrain.patience} epochs to find the best one",
            "Set after.retrain.patience",
        )


def _schedule_warnings(spec: ExperimentSpec) -> Iterator[Problem]:
    early, schedule = spec.fit.early_stopping, spec.fit.schedule
    on_plateau = isinstance(schedule, ReduceOnPlateau)
    if early is not None and isinstance(schedule, ReduceOnPlateau) and early.patience <= schedule.patience:
        yield warning(
            "/fit/schedule/patience",
            f"early stopping, with a patience of {early.patience}, ends the training before the learning "
            "rate is reduced",
            f"Set this patience below {early.patience}, or that of early stopping above {schedule.patience}",
        )
    if schedule is None or on_plateau or isinstance(schedule, Constant):
        return
    if any(_searched(spec, "epochs")):
        yield warning(
            "/fit/schedule",
            "the schedule depends on the epochs, so trials of different lengths have different learning "
            "rates",
            "Choose a constant learning rate or reduction on a plateau, or remove epochs from the search "
            "space",
        )


def _loss_under_class_weights(spec: ExperimentSpec) -> Iterator[Problem]:
    """Warn if the validation loss, which has no class weights, decides about a training that has them."""
    weighted = spec.fit.class_weights not in (None, "none") or any(_searched(spec, "class_weights"))
    if not weighted or spec.search is None:
        return
    early, retrain, objective = spec.fit.early_stopping, spec.after.retrain, spec.search.objective.metric
    why = f"class weights change the probabilities, so val_loss may rise while {objective} improves, and "
    if early is not None and early.monitor == "val_loss" != objective:
        yield warning(
            "/fit/early_stopping/monitor",
            f"{why}training may end at a poor epoch",
            "Leave the monitor empty to stop by the objective",
        )
    if retrain is not None and retrain.monitor == "val_loss" != objective:
        yield warning(
            "/after/retrain/monitor",
            f"{why}retraining may choose a poor epoch",
            "Leave the monitor empty to choose the epoch by the objective",
        )


def _batch_warnings(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    fit, rows = spec.fit, training_rows(spec, profile)
    if fit.batch_size > rows:
        yield warning(
            "/fit/batch_size",
            f"the batch is larger than the training rows (about {rows}), so every epoch is one step and the "
            "weights are updated only once",
            f"Use at most {rows}; 32 or 64 is usual for few rows",
        )
    steps = math.ceil(rows / fit.batch_size)
    if fit.steps_per_execution > steps:
        yield warning(
            "/fit/steps_per_execution",
            f"an epoch has only {steps} steps, so the rest of the number has no effect",
            f"Set at most {steps}",
        )


def training_rows(spec: ExperimentSpec, profile: Profile) -> int:
    """Estimate the number of training rows; a split by a column without a role may differ."""
    split, search = spec.required_data.split, spec.search
    named = named_part_rows(split, profile)
    if search is not None and search.evaluation.kind == "k_fold":
        outside = sum(named[:2]) if named is not None else profile.rows * (1 - split.test)
        return round(outside * (1 - 1 / search.evaluation.folds))
    return named[0] if named is not None else round(profile.rows * (1 - split.validation - split.test))
