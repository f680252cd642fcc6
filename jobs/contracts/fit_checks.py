"""What `fit` asks for that a data set cannot give, and what of it would surprise: pure functions."""

import math
from collections.abc import Iterator

from jobs.contracts import measures
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.problems import Problem, escaped
from jobs.contracts.profile import Profile
from jobs.contracts.schedules import Constant, ReduceOnPlateau


def problems(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    """List what of `fit` cannot run on the data that `profile` describes, the columns in their own roles."""
    yield from _of_augmentation(spec, profile)
    yield from _of_class_weights(spec, profile)
    yield from _of_folds(spec, profile)


def measured(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    """List what is watched but not measured for this task."""
    task = spec.data.task or profile.task
    watched = measures.validation_names(spec.fit.metrics, task)
    early, schedule = spec.fit.early_stopping, spec.fit.schedule
    if early is not None and early.monitor not in (*watched, "loss"):
        yield _not_measured("/fit/early_stopping/monitor", early.monitor, watched)
    if isinstance(schedule, ReduceOnPlateau) and schedule.monitor not in (*watched, "loss"):
        yield _not_measured("/fit/schedule/monitor", schedule.monitor, watched)


def _not_measured(pointer: str, name: str, watched: list[str]) -> Problem:
    return Problem(pointer, f"{name!r} is not measured here; take {', '.join(watched)}")


def _searched(spec: ExperimentSpec, head: str) -> Iterator[tuple[int, str]]:
    for i, parameter in enumerate(spec.search.space if spec.search is not None else ()):
        field, _, inside = parameter.name.partition("/")
        if field == head:
            yield i, inside


def _of_augmentation(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    if profile.kind == "image":
        return
    sentence = "augmentation varies images; these data are vectors"
    if spec.fit.augmentation is not None:
        yield Problem("/fit/augmentation", sentence)
    for i, _ in _searched(spec, "augmentation"):
        yield Problem(f"/search/space/{i}/name", sentence)


def _of_class_weights(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    rule, labels = spec.fit.class_weights, profile.class_labels
    searched = list(_searched(spec, "class_weights"))
    task = spec.data.task or profile.task
    if task not in ("binary", "multiclass"):
        sentence = f"class weights need classes; this is a {task} task"
        if rule not in (None, "none"):
            yield Problem("/fit/class_weights", sentence)
        yield from (Problem(f"/search/space/{i}/name", sentence) for i, _ in searched)
        return
    known = ", ".join(labels[:20])
    for label in rule if isinstance(rule, dict) else ():
        if label not in labels:
            yield Problem(f"/fit/class_weights/{escaped(label)}", f"no class {label!r}; there are {known}")
    for i, label in searched:
        if label and label not in labels:
            yield Problem(f"/search/space/{i}/name", f"no class {label!r}; there are {known}")


def _of_folds(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    if spec.search is None or spec.search.evaluation.kind != "k_fold":
        return
    folds, split = spec.search.evaluation.folds, spec.data.split
    rows = profile.rows - max(round(profile.rows * split.test), 1)
    of_group = {column.name: column.distinct for column in profile.columns}.get(split.group or "")
    if folds > (of_group or rows):
        what = f"groups in {split.group!r}" if of_group else "rows beside the test part"
        yield Problem("/search/evaluation/folds", f"there are only {of_group or rows} {what}")


def warnings(spec: ExperimentSpec, profile: Profile | None) -> Iterator[Problem]:
    """List what will run but may surprise."""
    fit = spec.fit
    if fit.early_stopping is None and fit.epochs > 50:
        yield Problem("/fit/early_stopping", f"without it every training runs all {fit.epochs} epochs")
    if fit.early_stopping is not None and fit.early_stopping.patience >= fit.epochs:
        yield Problem("/fit/early_stopping/patience", f"never stops a training of {fit.epochs} epochs")
    early, schedule = fit.early_stopping, fit.schedule
    if early is not None and isinstance(schedule, ReduceOnPlateau) and early.patience <= schedule.patience:
        sentence = "early stopping is not more patient: it ends the training before the rate is cut"
        yield Problem("/fit/schedule/patience", sentence)
    if fit.schedule is not None and not isinstance(fit.schedule, Constant) and _searches_epochs(spec):
        sentence = "a schedule spans fit.epochs: trials of other lengths differ in their rates too"
        yield Problem("/fit/schedule", sentence)
    if profile is not None:
        yield from _about_batches(spec, profile)


def _searches_epochs(spec: ExperimentSpec) -> bool:
    return any(True for _ in _searched(spec, "epochs"))


def _about_batches(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    fit, rows = spec.fit, training_rows(spec, profile)
    if fit.batch_size > rows:
        sentence = f"more than the about {rows} training rows: every epoch is one step"
        yield Problem("/fit/batch_size", sentence)
    steps = math.ceil(rows / fit.batch_size)
    if fit.steps_per_execution > steps:
        yield Problem("/fit/steps_per_execution", f"an epoch has only {steps} steps to fuse")


def training_rows(spec: ExperimentSpec, profile: Profile) -> int:
    """Return about how many rows each training sees (a split by column may differ)."""
    split, search = spec.data.split, spec.search
    if search is not None and search.evaluation.kind == "k_fold":
        return round(profile.rows * (1 - split.test) * (1 - 1 / search.evaluation.folds))
    return round(profile.rows * (1 - split.validation - split.test))
