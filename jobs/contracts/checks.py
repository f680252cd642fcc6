"""What a spec asks for that its data set cannot give, and what would surprise: pure functions.

`problems` would fail a run, so they keep a spec from being submitted. `warnings` are sentences that
a reader wants before pressing the button. Both point into the spec.
"""

import math
from collections.abc import Iterator
from contextlib import suppress

from pydantic import ValidationError

from jobs.contracts import fit_checks, measures
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.probes import MOST_VALUES, configurations
from jobs.contracts.problems import Problem, first
from jobs.contracts.profile import Profile
from jobs.contracts.search import Objective
from jobs.contracts.search_space import Value, Values
from jobs.contracts.values import apply_values
from jobs.contracts.variables import check_layout, variables


def problems(spec: ExperimentSpec, profile: Profile) -> list[Problem]:
    """List what of `spec` cannot run on the data that `profile` describes."""
    found = [*_of_roles(spec, profile), *_of_model(spec, profile), *_of_measures(spec, profile)]
    if not roles_differ(spec, profile):
        found += fit_checks.problems(spec, profile)
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


def _of_model(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    if (refusal := spec.model.refusal(profile)) is not None:
        yield Problem("/model/template", refusal)


def _of_measures(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    task = spec.data.task or profile.task
    losses, metrics = measures.losses_for(task), measures.metrics_for(task)
    if spec.fit.loss is not None and spec.fit.loss not in losses:
        yield Problem("/fit/loss", f"{spec.fit.loss!r} does not fit {task}; take {', '.join(losses)}")
    for i, name in enumerate(spec.fit.metrics or ()):
        if name not in metrics:
            yield Problem(f"/fit/metrics/{i}", f"{name!r} does not fit {task}; take {', '.join(metrics)}")
    watched = measures.validation_names(spec.fit.metrics, task)
    for pointer, objective in _objectives(spec):
        if objective.metric not in watched:
            sentence = f"{objective.metric!r} is not measured here; take {', '.join(watched)}"
            yield Problem(f"{pointer}/metric", sentence)
    yield from fit_checks.measured(spec, profile)


def _objectives(spec: ExperimentSpec) -> list[tuple[str, Objective]]:
    """List the objectives of a search with their places in the spec."""
    if spec.search is None:
        return []
    if spec.search.objectives is None:
        return [("/search/objective", spec.search.objective)]
    return [(f"/search/objectives/{i}", objective) for i, objective in enumerate(spec.search.objectives)]


def _of_space(spec: ExperimentSpec) -> Iterator[Problem]:
    """Try each hyperparameter's extremes in the place they go to, under what decides over them."""
    space = spec.search.space if spec.search is not None else ()
    for i, parameter in enumerate(space):
        for values in configurations(space, parameter):
            if (message := _refusal(spec, values)) is not None:
                yield Problem(f"/search/space/{i}", f"{_told(parameter.name, values)}: {message}")
                break


def _refusal(spec: ExperimentSpec, values: Values) -> str | None:
    try:
        apply_values(spec, values)
    except ValidationError as error:
        return first(error).message
    except ValueError as error:
        return str(error)
    return None


def _told(name: str, values: Values) -> str:
    others = ", ".join(f"{other} = {value!r}" for other, value in values.items() if other != name)
    return f"{name} = {values[name]!r}" + (f" with {others}" if others else "")


def _of_layout(spec: ExperimentSpec, profile: Profile) -> list[Problem]:
    """Check the layout rules under the spec's own arguments and under each value that is searched.

    A trial whose variables do not fit the rules fails before its first step, so it is said here.
    """
    if spec.mesh is None or spec.model.info.layers is None:
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


def _variants(spec: ExperimentSpec) -> Iterator[tuple[str, Value, ExperimentSpec]]:
    searched = spec.search.space if spec.search is not None else ()
    shaping = [parameter for parameter in searched if parameter.name in spec.model.info.shaping]
    if not shaping:
        yield "", "", spec
    for parameter in shaping:
        for value in parameter.grid()[:MOST_VALUES]:
            with suppress(ValidationError):  # `_of_space` has said so
                yield parameter.name, value, apply_values(spec, {parameter.name: value})


def warnings(spec: ExperimentSpec, profile: Profile | None) -> list[Problem]:
    """List what will run but may surprise."""
    of_fit = fit_checks.warnings(spec, profile)
    found = [*_about_model(spec), *_about_search(spec), *of_fit, *_about_after(spec), *_about_devices(spec)]
    if profile is not None and roles_differ(spec, profile):
        sentence = "other roles than the data set's own: memory and layout are known only when it runs"
        found.append(Problem("/data", sentence))
    return found


def _about_model(spec: ExperimentSpec) -> Iterator[Problem]:
    if spec.model.info.layers is None:
        unknown = "memory is unknown before" + (", and the layout is checked then" if spec.mesh else "")
        yield Problem("/model/template", f"{spec.model.template} is measured when it is built: {unknown}")


def _about_search(spec: ExperimentSpec) -> Iterator[Problem]:
    search = spec.search
    if search is None:
        return
    for pointer, objective in _objectives(spec):
        best = measures.direction(objective.metric)
        if best != objective.direction:
            sentence = f"{objective.metric} is better the {'higher' if best == 'max' else 'lower'} it is"
            yield Problem(f"{pointer}/direction", f"{sentence}; this search looks for the worst")
    if search.trainings() == 1:
        sentence = "one execution a trial shows no spread: luck of the seed and quality look alike"
        yield Problem("/search/executions_per_trial", sentence)
    if any(parameter.name == "epochs" for parameter in search.space) and spec.fit.early_stopping is None:
        yield Problem("/search/space", "searching epochs without early stopping compares unequal budgets")


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
