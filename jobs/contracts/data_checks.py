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
from jobs.contracts.features import plan_column
from jobs.contracts.probes import MOST_VALUES, configurations
from jobs.contracts.problems import Problem, first, warning
from jobs.contracts.profile import Profile
from jobs.contracts.search import Objective
from jobs.contracts.search_space import Value, Values
from jobs.contracts.values import apply_values
from jobs.contracts.variables import check_layout, variables

TRAINING_ONLY = ("seed", "shuffle", "epochs", "steps_per_execution")
"""Hyperparameters that change neither the model nor the optimizer."""


def problems(spec: ExperimentSpec, profile: Profile) -> list[Problem]:
    """Return the settings of `spec` that cannot work with the data that `profile` describes."""
    found = [
        *_check_columns(spec, profile),
        *_check_preprocessing(spec, profile),
        *_check_measures(spec, profile),
    ]
    if (reason := spec.model.refusal(profile)) is not None:
        found.append(Problem("/model/template", reason))
    # Under other roles, the profile describes neither the classes nor the shape of the inputs.
    if not roles_differ(spec, profile):
        found += fit_checks.problems(spec, profile)
    # Searched values and layouts can be checked only in a spec that has no other problems.
    return found or [*_check_space(spec), *_check_layouts(spec, profile)]


def roles_differ(spec: ExperimentSpec, profile: Profile) -> bool:
    """Return whether target, features, task or an encoding differ from the profile.

    The input shape is then unknown.
    """
    data = spec.data
    return (
        (data.target or profile.target) != profile.target
        or (data.features or profile.features) != profile.features
        or (data.task or profile.task) != profile.task
        or any(options.encode is not None for options in data.preprocessing.values())
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
    known = frozenset(names)
    for pointer, columns in wanted.items():
        for column in columns:
            if column is not None and column not in known:
                yield Problem(pointer, f"no column {column!r}; the columns are {', '.join(names[:20])}")


def _check_preprocessing(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    options = spec.data.preprocessing
    if options and not profile.has_pipeline:
        message = "only tables have preprocessing; upload the file again if this is an earlier table"
        yield Problem("/data/preprocessing", message)
        return
    known = {column.name: column for column in profile.columns}
    for name, chosen in options.items():
        if name not in known:
            message = f"no column {name!r}; the columns are {', '.join([*known][:20])}"
            yield Problem("/data/preprocessing", message)
            continue
        try:
            plan_column(known[name], chosen)
        except ValueError as error:
            yield Problem("/data/preprocessing", str(error))


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
    return [
        *_unknown_memory_warnings(spec, profile),
        *_search_warnings(spec),
        *fit_checks.warnings(spec, profile),
        *_after_warnings(spec),
        *_device_warnings(spec),
    ]


def _unknown_memory_warnings(spec: ExperimentSpec, profile: Profile | None) -> Iterator[Problem]:
    checked = "the memory and the layout" if spec.mesh else "the memory"
    if spec.model.info.layers is None:
        yield warning(
            "/model/template",
            f"{checked} of {spec.model.template} cannot be checked before a worker builds it, so the job may "
            "fail when it starts",
            "Run one training before a search, and read its memory in the tab System",
        )
    if profile is not None and roles_differ(spec, profile):
        yield warning(
            "/data",
            f"target, features, task or encodings are not those of the data set, so {checked} cannot be "
            "checked and the job may fail when it starts",
            "Run one training before a search, or upload a version of the data set with these roles",
        )


def _search_warnings(spec: ExperimentSpec) -> Iterator[Problem]:
    search = spec.search
    if search is None:
        return
    for pointer, objective in _objectives(spec):
        best = measures.direction(objective.metric)
        if best != objective.direction:
            yield warning(
                f"{pointer}/direction",
                f"{'higher' if best == 'max' else 'lower'} values of {objective.metric} are better, so this "
                "search looks for the worst",
                f"Set the direction to {best}",
            )
    if search.trainings() == 1:
        yield warning(
            "/search/executions_per_trial",
            "with one execution per trial a lucky seed can make a trial the best",
            "Use 2 or more executions per trial to see the effect of the seed as a spread",
        )
    if any(parameter.name == "epochs" for parameter in search.space) and spec.fit.early_stopping is None:
        yield warning(
            "/search/space",
            "without early stopping trials with more epochs train longer, and can be the best for this alone",
            "Add early stopping, or remove epochs from the search space",
        )


def _after_warnings(spec: ExperimentSpec) -> Iterator[Problem]:
    retrain = spec.after.retrain
    if retrain is None:
        return
    if retrain.include_validation and retrain.epochs_factor > 1:
        # int(best × factor) exceeds best once best × (factor − 1) is 1. Without the subtraction, rounding
        # would make it 6 epochs instead of 5 under a factor of 1.2.
        least = math.ceil(1 / (retrain.epochs_factor - 1) - 1e-9)
        if least > 1:
            yield warning(
                "/after/retrain/epochs_factor",
                f"int(best epoch × {retrain.epochs_factor:g}) adds no epoch if the best epoch is below "
                f"{least}, so the final training is then no longer on its additional rows",
                "Use a factor of 2 to add epochs after every best epoch, or keep it if the best one is late",
            )
    if (
        spec.search is not None
        and not any(p.name not in TRAINING_ONLY for p in spec.search.space)
        and spec.after.ensemble
    ):
        yield warning(
            "/after/ensemble",
            "the members will be the same model with other seeds, so the ensemble will probably gain little",
            "Search a hyperparameter of the model or the optimizer, such as units or learning_rate",
        )


def _device_warnings(spec: ExperimentSpec) -> Iterator[Problem]:
    mesh, policy = spec.mesh, spec.precision.policy
    if policy.startswith("mixed_") and (mesh is None or mesh.devices == "cpu"):
        yield warning(
            "/precision/policy",
            f"{policy} makes training faster on GPUs and TPUs, but slower on CPUs",
            "Choose float32 unless the pool has GPUs or TPUs",
        )
    if mesh is None:
        return
    if mesh.simulate is not None:
        yield warning(
            "/mesh/simulate",
            "simulated devices share the machine's cores, so the results are correct, but training is slower",
            "Use them to test a layout, and train on real devices or without a mesh",
        )
        if spec.resources.slots > 1:
            yield warning(
                "/resources/slots",
                f"a simulated mesh uses one slot, so {spec.resources.slots - 1} of the "
                f"{spec.resources.slots} would be reserved without use",
                "Set slots to 1",
            )
    if mesh.size() > 1 and mesh.batch_axis is None and not mesh.layout:
        yield warning(
            "/mesh",
            f"there is no batch axis and no layout rule, so all {mesh.size()} devices compute the same",
            "Set the batch axis to divide the batch, or add a layout rule to divide the weights",
        )
