"""What a spec asks for that its data set cannot give, and what would surprise: pure functions.

`problems` would fail a run, so they keep a spec from being submitted. `warnings` are sentences that
a reader wants before pressing the button. Both point into the spec.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress

from pydantic import ValidationError

from jobs.spec import measures
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem
from jobs.spec.profile import Profile
from jobs.spec.search_space import Parameter, Value
from jobs.spec.values import apply_values
from jobs.spec.variables import check_layout, variables

LOOKED_AT = 64
"""How many values of one hyperparameter are tried against a layout: all of them, in most spaces."""


def problems(spec: ExperimentSpec, profile: Profile) -> list[Problem]:
    """List what of `spec` cannot run on the data that `profile` describes."""
    found = [*_of_roles(spec, profile), *_of_model(spec, profile), *_of_measures(spec, profile)]
    return found or [*_of_space(spec), *_of_layout(spec, profile)]


def roles_differ(spec: ExperimentSpec, profile: Profile) -> bool:
    """Say whether the spec gives the columns other roles than the profile: shapes are then unknown."""
    data = spec.data
    return (
        (data.target or profile.target) != profile.target
        or (data.features or profile.features) != profile.features
        or (data.task or profile.task) != profile.task
    )


def _of_roles(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    names = [column.name for column in profile.columns]
    split = spec.data.split
    wanted = {
        "/data/target": (spec.data.target,),
        "/data/features": spec.data.features or (),
        "/data/split/group": (split.group,),
        "/data/split/column": (split.column,),
        "/data/split/time": (split.time,),
    }
    for pointer, columns in wanted.items():
        for column in columns:
            if column is not None and column not in names:
                yield Problem(pointer, f"no column {column!r}; there are {', '.join(names[:20])}")


def fits(spec: ExperimentSpec, profile: Profile) -> bool:
    """Say whether the template can be built on these data at all."""
    return spec.model.template != "cnn" or profile.kind == "image"


def _of_model(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    if not fits(spec, profile):
        yield Problem("/model/template", "cnn takes images; these data are vectors: use mlp or linear")


def _of_measures(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    task = spec.data.task or profile.task
    losses, metrics = measures.losses_for(task), measures.metrics_for(task)
    if spec.fit.loss is not None and spec.fit.loss not in losses:
        yield Problem("/fit/loss", f"{spec.fit.loss!r} does not fit {task}; take {', '.join(losses)}")
    for i, name in enumerate(spec.fit.metrics or ()):
        if name not in metrics:
            yield Problem(f"/fit/metrics/{i}", f"{name!r} does not fit {task}; take {', '.join(metrics)}")
    watched = measures.validation_names(spec.fit.metrics, task)
    if spec.search is not None and spec.search.objective.metric not in watched:
        sentence = f"{spec.search.objective.metric!r} is not measured here; take {', '.join(watched)}"
        yield Problem("/search/objective/metric", sentence)
    stopping = spec.fit.early_stopping
    if stopping is not None and stopping.monitor not in (*watched, "loss"):
        sentence = f"{stopping.monitor!r} is not measured here; take {', '.join(watched)}"
        yield Problem("/fit/early_stopping/monitor", sentence)


def extremes(parameter: Parameter) -> Sequence[Value]:
    """Return the values between which a hyperparameter's effects lie, the largest first."""
    values = parameter.grid()
    if parameter.kind in ("int", "float"):
        return list(dict.fromkeys((values[-1], values[0])))
    return values[::-1]


def _of_space(spec: ExperimentSpec) -> Iterator[Problem]:
    """Try each hyperparameter's extremes in the place they go to; of batch sizes all, for the mesh."""
    for i, parameter in enumerate(spec.search.space if spec.search is not None else ()):
        tried = parameter.grid() if parameter.name == "batch_size" else extremes(parameter)
        for value in tried[:LOOKED_AT]:
            try:
                apply_values(spec, {parameter.name: value})
            except ValidationError as error:
                message = error.errors()[0]["msg"].removeprefix("Value error, ")
                yield Problem(f"/search/space/{i}", f"{parameter.name} = {value!r}: {message}")
                break


def _of_layout(spec: ExperimentSpec, profile: Profile) -> list[Problem]:
    """Check the layout rules under the spec's own arguments and under each value that is searched.

    A trial whose variables do not fit the rules fails before its first step, so it is said here.
    """
    if spec.mesh is None:
        return []
    variants = list(_variants(spec))
    found: dict[Problem, list[str]] = {}
    for name, value, tried in variants:
        of_model = variables(tried.model, profile)
        for problem in check_layout(spec.mesh, of_model, tried.fit.batch_size):
            found.setdefault(problem, []).append(f"{name} = {value!r}")
    told = [
        problem
        if len(where) == len(variants)
        else Problem(problem.pointer, f"with {where[0]}: {problem.message}")
        for problem, where in found.items()
    ]
    return list({problem.pointer: problem for problem in reversed(told)}.values())[::-1]


SHAPING = frozenset({"units", "layers", "filters", "kernel", "batch_norm"})
"""Hyperparameters that change which variables there are, or their shapes."""


def _variants(spec: ExperimentSpec) -> Iterator[tuple[str, Value, ExperimentSpec]]:
    searched = spec.search.space if spec.search is not None else ()
    shaping = [parameter for parameter in searched if parameter.name in SHAPING]
    if not shaping:
        yield "", "", spec
    for parameter in shaping:
        for value in parameter.grid()[:LOOKED_AT]:
            with suppress(ValidationError):  # `_of_space` has said so
                yield parameter.name, value, apply_values(spec, {parameter.name: value})


def warnings(spec: ExperimentSpec, profile: Profile | None) -> list[Problem]:
    """List what will run but may surprise."""
    found = [*_about_search(spec), *_about_fit(spec, profile), *_about_after(spec), *_about_devices(spec)]
    if profile is not None and roles_differ(spec, profile):
        sentence = "other roles than the data set's own: memory and layout are known only when it runs"
        found.append(Problem("/data", sentence))
    return found


def _about_search(spec: ExperimentSpec) -> Iterator[Problem]:
    search = spec.search
    if search is None:
        return
    best = measures.direction(search.objective.metric)
    if best != search.objective.direction:
        sentence = f"{search.objective.metric} is better the {'higher' if best == 'max' else 'lower'} it is"
        yield Problem("/search/objective/direction", f"{sentence}; this search looks for the worst")
    if search.executions_per_trial == 1:
        sentence = "one execution a trial shows no spread: luck of the seed and quality look alike"
        yield Problem("/search/executions_per_trial", sentence)
    if any(parameter.name == "epochs" for parameter in search.space) and spec.fit.early_stopping is None:
        yield Problem("/search/space", "searching epochs without early stopping compares unequal budgets")


def _about_fit(spec: ExperimentSpec, profile: Profile | None) -> Iterator[Problem]:
    fit = spec.fit
    if fit.early_stopping is None and fit.epochs > 50:
        yield Problem("/fit/early_stopping", f"without it every training runs all {fit.epochs} epochs")
    if fit.early_stopping is not None and fit.early_stopping.patience >= fit.epochs:
        yield Problem("/fit/early_stopping/patience", f"never stops a training of {fit.epochs} epochs")
    if profile is None:
        return
    rows = training_rows(spec, profile)
    if fit.batch_size > rows:
        sentence = f"more than the about {rows} training rows: every epoch is one step"
        yield Problem("/fit/batch_size", sentence)
    steps = math.ceil(rows / fit.batch_size)
    if fit.steps_per_execution > steps:
        yield Problem("/fit/steps_per_execution", f"an epoch has only {steps} steps to fuse")


def training_rows(spec: ExperimentSpec, profile: Profile) -> int:
    """Return about how many rows are trained on (a split by column may differ)."""
    split = spec.data.split
    return round(profile.rows * (1 - split.validation - split.test))


def _about_after(spec: ExperimentSpec) -> Iterator[Problem]:
    retrain = spec.after.retrain
    if retrain is None:
        return
    if retrain.epochs_factor > 1:
        least = math.ceil(1 / (retrain.epochs_factor - 1) - 1e-9)
        if least > 1:
            sentence = f"int(best epoch × {retrain.epochs_factor:g}) adds nothing below {least} epochs"
            yield Problem("/after/retrain/epochs_factor", sentence)
    if (
        spec.search is not None
        and not any(_shapes(p.name) for p in spec.search.space)
        and spec.after.ensemble
    ):
        sentence = "members that differ only in how they were trained are alike: a small gain is likely"
        yield Problem("/after/ensemble", sentence)


def _shapes(name: str) -> bool:
    return name not in ("seed", "shuffle", "epochs", "steps_per_execution")


def _about_devices(spec: ExperimentSpec) -> Iterator[Problem]:
    mesh, policy = spec.mesh, spec.precision.policy
    if policy.startswith("mixed_") and (mesh is None or mesh.devices == "cpu"):
        yield Problem("/precision/policy", f"{policy} gains speed on GPUs and TPUs; on CPUs it is slower")
    if mesh is not None and mesh.simulate is not None:
        sentence = "simulated devices share this machine's cores: right results, no speed-up"
        yield Problem("/mesh/simulate", sentence)
        if spec.resources.slots > 1:
            yield Problem("/resources/slots", "a simulated mesh takes one slot")
    if mesh is not None and mesh.size() > 1 and mesh.batch_axis is None and not mesh.layout:
        yield Problem("/mesh", "no batch axis and no rule: every device does the same work")
