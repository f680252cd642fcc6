"""Checks a spec against the profile of its data set.

`problems` would make a run fail, so a spec with problems cannot be submitted. `warnings` point out settings
that are valid but probably not intended. Both contain JSON pointers into the spec.
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

TRAINING_ONLY = ("seed", "shuffle", "epochs", "steps_per_execution")
"""Hyperparameters that change neither the model nor the optimizer."""


def problems(spec: ExperimentSpec, profile: Profile) -> list[Problem]:
    """Return the settings of `spec` that cannot work with the data that `profile` describes."""
    found = [*_check_columns(spec, profile), *_check_measures(spec, profile)]
    if (reason := spec.model.refusal(profile)) is not None:
        found.append(Problem("/model/template", reason))
    # Under other roles, the profile describes neither the classes nor the shape of the inputs.
    if not roles_differ(spec, profile):
        found += fit_checks.problems(spec, profile)
    # Searched values and layouts can be checked only in a spec that has no other problems.
    return found or [*_check_space(spec), *_check_layouts(spec, profile)]


def roles_differ(spec: ExperimentSpec, profile: Profile) -> bool:
    """Return whether target, features or task differ from the profile; the input shape is then unknown."""
    data = spec.data
    return (
        (data.target or profile.target) != profile.target
        or (data.features or profile.features) != profile.features
        or (data.task or profile.task) != profile.task
    )


def _check_columns(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
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
                yield Problem(pointer, f"no column {column!r}; the columns are {', '.join(names[:20])}")


def _check_measures(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    task = spec.data.task or profile.task
    losses, metrics = measures.losses_for(task), measures.metrics_for(task)
    if spec.fit.loss is not None and spec.fit.loss not in losses:
        yield Problem(
            "/fit/loss", f"{spec.fit.loss!r} is not a loss for {task}; use one of {', '.join(losses)}"
        )
    for i, name in enumerate(spec.fit.metrics or ()):
        if name not in metrics:
            yield Problem(
                f"/fit/metrics/{i}", f"{name!r} is not a metric for {task}; use one of {', '.join(metrics)}"
            )
    watched = measures.validation_names(spec.fit.metrics, task)
    for pointer, objective in _objectives(spec):
        if objective.metric not in watched:
            sentence = f"{objective.metric!r} is not measured; use one of {', '.join(watched)}"
            yield Problem(f"{pointer}/metric", sentence)
    yield from fit_checks.monitor_problems(spec, profile)


def _objectives(spec: ExperimentSpec) -> list[tuple[str, Objective]]:
    """Return the objectives of a search with their JSON pointers."""
    if spec.search is None:
        return []
    if spec.search.objectives is None:
        return [("/search/objective", spec.search.objective)]
    return [(f"/search/objectives/{i}", objective) for i, objective in enumerate(spec.search.objectives)]


def _check_space(spec: ExperimentSpec) -> Iterator[Problem]:
    """Apply each hyperparameter's extreme values, with the values that they depend on, to the spec."""
    space = spec.search.space if spec.search is not None else ()
    for i, parameter in enumerate(space):
        name = parameter.name
        for values in configurations(space, parameter):
            if (message := _error(spec, values)) is not None:
                others = ", ".join(f"{other} = {value!r}" for other, value in values.items() if other != name)
                where = f"{name} = {values[name]!r}" + (f" with {others}" if others else "")
                yield Problem(f"/search/space/{i}", f"{where}: {message}")
                # One example for each hyperparameter is enough.
                break


def _error(spec: ExperimentSpec, values: Values) -> str | None:
    try:
        apply_values(spec, values)
    except ValidationError as error:
        return first(error).message
    except ValueError as error:
        return str(error)
    return None


def _check_layouts(spec: ExperimentSpec, profile: Profile) -> list[Problem]:
    """Check the layout rules for the spec's arguments, or for each searched value that affects shapes."""
    if spec.mesh is None or spec.model.info.layers is None:
        return []
    variants = list(_variants(spec))
    found: dict[Problem, list[str]] = {}
    for name, value, tried in variants:
        listed = variables(tried.model, profile)
        for problem in check_layout(spec.mesh, listed, tried.fit.batch_size):
            found.setdefault(problem, []).append(f"{name} = {value!r}")
    by_pointer: dict[str, Problem] = {}
    for problem, where in found.items():
        # A problem of every variant does not depend on the searched value, so the value is not named.
        named = "" if len(where) == len(variants) else f"with {where[0]}: "
        by_pointer.setdefault(problem.pointer, Problem(problem.pointer, named + problem.message))
    return list(by_pointer.values())


def _variants(spec: ExperimentSpec) -> Iterator[tuple[str, Value, ExperimentSpec]]:
    """Yield name, value and resulting spec for each value of the hyperparameters that affect shapes."""
    searched = spec.search.space if spec.search is not None else ()
    shaping = [parameter for parameter in searched if parameter.name in spec.model.info.shaping]
    if not shaping:
        yield "", "", spec
    for parameter in shaping:
        for value in parameter.grid()[:MOST_VALUES]:
            # Reported by `_check_space`.
            with suppress(ValidationError):
                yield parameter.name, value, apply_values(spec, {parameter.name: value})


def warnings(spec: ExperimentSpec, profile: Profile | None) -> list[Problem]:
    """Return settings that are valid but probably not intended."""
    found = []
    if spec.model.info.layers is None:
        layout = " and the layout is not checked" if spec.mesh else ""
        sentence = f"the memory of {spec.model.template} is unknown{layout} until it is built"
        found.append(Problem("/model/template", sentence))
    found += [
        *_search_warnings(spec),
        *fit_checks.warnings(spec, profile),
        *_after_warnings(spec),
        *_device_warnings(spec),
    ]
    if profile is not None and roles_differ(spec, profile):
        sentence = "not the data set's own target, features or task: memory and layout are unknown yet"
        found.append(Problem("/data", sentence))
    return found


def _search_warnings(spec: ExperimentSpec) -> Iterator[Problem]:
    search = spec.search
    if search is None:
        return
    for pointer, objective in _objectives(spec):
        best = measures.direction(objective.metric)
        if best != objective.direction:
            sentence = f"{'higher' if best == 'max' else 'lower'} values of {objective.metric} are better"
            yield Problem(f"{pointer}/direction", f"{sentence}; this search looks for the worst")
    if search.trainings() == 1:
        sentence = (
            "with a single execution, the effect of the seed cannot be separated from that of the values"
        )
        yield Problem("/search/executions_per_trial", sentence)
    if any(parameter.name == "epochs" for parameter in search.space) and spec.fit.early_stopping is None:
        yield Problem(
            "/search/space", "without early stopping, trials with different epochs have different budgets"
        )


def _after_warnings(spec: ExperimentSpec) -> Iterator[Problem]:
    retrain = spec.after.retrain
    if retrain is None:
        return
    if retrain.epochs_factor > 1:
        # int(best × factor) exceeds best once best × (factor − 1) is 1. Without the subtraction, rounding
        # would make it 6 epochs instead of 5 under a factor of 1.2.
        least = math.ceil(1 / (retrain.epochs_factor - 1) - 1e-9)
        if least > 1:
            sentence = f"int(best epoch × {retrain.epochs_factor:g}) adds no epoch below {least} epochs"
            yield Problem("/after/retrain/epochs_factor", sentence)
    if (
        spec.search is not None
        and not any(p.name not in TRAINING_ONLY for p in spec.search.space)
        and spec.after.ensemble
    ):
        sentence = "the members differ only in how they were trained: the gain will probably be small"
        yield Problem("/after/ensemble", sentence)


def _device_warnings(spec: ExperimentSpec) -> Iterator[Problem]:
    mesh, policy = spec.mesh, spec.precision.policy
    if policy.startswith("mixed_") and (mesh is None or mesh.devices == "cpu"):
        yield Problem("/precision/policy", f"{policy} is faster on GPUs and TPUs, but slower on CPUs")
    if mesh is not None and mesh.simulate is not None:
        sentence = (
            "simulated devices share the machine's cores: the results are correct, but there is no speed-up"
        )
        yield Problem("/mesh/simulate", sentence)
        if spec.resources.slots > 1:
            yield Problem("/resources/slots", "a simulated mesh needs only one slot")
    if mesh is not None and mesh.size() > 1 and mesh.batch_axis is None and not mesh.layout:
        yield Problem("/mesh", "no batch axis and no layout rule: every device computes the same")
