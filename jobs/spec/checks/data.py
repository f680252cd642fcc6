"""Checks a spec against the profile of its data set.

`problems` would make a run fail, so a spec with problems cannot be submitted. `warnings` point out settings
that are valid but probably not intended. Both contain JSON pointers into the spec.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from pydantic import ValidationError

from jobs.spec.checks import fit as fit_checks
from jobs.spec.data import windows
from jobs.spec.data.columns import ColumnOptions, TextEncode
from jobs.spec.data.encoding import (
    encoded,
    feature_names,
    roles_differ,
    size_refusal,
    width_in_memory,
)
from jobs.spec.data.features import ngrams_refusal, plan_column
from jobs.spec.data.images import IMAGE
from jobs.spec.data.profile import Column, Profile
from jobs.spec.data.split_roles import MIN_GROUPS, few_groups, resolved
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.variables import check_layout, variables
from jobs.spec.problems import Problem, escaped, first, warning
from jobs.spec.sections import measures
from jobs.spec.sections.data import Split
from jobs.spec.sections.model import model_of
from jobs.spec.space.probes import MOST_VALUES, configurations
from jobs.spec.space.search_space import Value, Values
from jobs.spec.space.searchable import TEMPLATE
from jobs.spec.space.values import apply_values
from jobs.spec.templates import TEMPLATES

TRAINING_ONLY = ("seed", "shuffle", "epochs", "steps_per_execution")
"""Hyperparameters that change neither the model nor the optimizer."""


def problems(spec: ExperimentSpec, profile: Profile) -> list[Problem]:
    """Return the settings of `spec` that cannot work with the data that `profile` describes."""
    if spec.model.info.trains_itself:
        return [*_check_columns(spec, profile), *_check_split(spec, profile)]
    problems_so_far = [
        *_check_columns(spec, profile),
        *_check_split(spec, profile),
        *_check_preprocessing(spec, profile),
        *_check_measures(spec, profile),
    ]
    described = encoded(spec, profile)
    problems_so_far += windows.problems(spec.required_data, profile)
    if profile.has_pipeline:
        problems_so_far += _check_size(spec, profile, described)
    profile = described
    problems_so_far += _check_templates(spec, profile)
    # Under other roles, the profile describes neither the classes nor the shape of the inputs.
    if not roles_differ(spec, profile):
        problems_so_far += fit_checks.problems(spec, profile)
    # Searched values and layouts can be checked only in a spec that has no other problems.
    if problems_so_far:
        return problems_so_far
    # Those of own code are checked before its space is completed.
    of_values = () if spec.model.info.own_names else value_problems(spec)
    return [*of_values, *_check_layouts(spec, profile)]


def _check_size(spec: ExperimentSpec, profile: Profile, described: Profile) -> Iterator[Problem]:
    """Check the size of the encoded columns, and of their rows in all windows."""
    shape = described.input_shape
    # The shape of a window begins with its rows. Images keep the size with which they were stored: of their
    # shape only the height counts, which is never too large.
    positions = shape[-1] if profile.images is None else shape[0]
    if (reason := size_refusal(positions, profile)) is not None:
        yield Problem("/data/preprocessing", reason)
    elif (
        profile.images is None
        and size_refusal(width_in_memory(positions, spec.required_data.window), profile) is not None
    ):
        times = shape[0]
        message = (
            f"each row of the table would be in memory {times:,} times, which is too large; choose a window "
            "of fewer rows, or fewer features"
        )
        yield Problem("/data/window/rows", message)


def _check_templates(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    if spec.required_data.task is not None:
        profile = profile.model_copy(update={"task": spec.required_data.task})
    if (reason := spec.model.refusal(profile)) is not None:
        yield Problem(f"/model/{spec.model.named_by}", reason)
    for i, parameter in enumerate(spec.search.space if spec.search is not None else ()):
        if parameter.name == TEMPLATE and not spec.model.info.own_names:
            # Values that are no templates are reported by `_check_space`.
            models = (model_of(str(name)) for name in parameter.grid() if name in TEMPLATES)
            for reason in filter(None, (model.refusal(profile) for model in models)):
                yield Problem(f"/search/space/{i}", reason)
            if spec.mesh is not None:
                message = (
                    "the layout rules of a mesh fit one template: leave out mesh, or search one template"
                )
                yield Problem("/mesh", message)


def _check_columns(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    names = [column.name for column in profile.columns]
    split = spec.required_data.split
    named_columns = {
        "/data/target": (spec.required_data.target,),
        "/data/features": spec.required_data.features or (),
        "/data/split/group": (split.group,),
        "/data/split/column": (split.column,),
        "/data/split/time": (split.time,),
    }
    column_names = frozenset(names)
    missing = {column.name: column.missing for column in profile.columns}
    target = spec.required_data.target
    if target not in (None, profile.target) and (rows := missing.get(target or "")):
        yield Problem(
            "/data/target",
            f"column {target!r} has no value in {rows:,} rows; upload a version with this target from which "
            "these rows are left out",
        )
    for pointer, columns in named_columns.items():
        for column in columns:
            if column is not None and column not in column_names:
                yield Problem(pointer, f"no column {column!r}; the columns are {', '.join(names[:20])}")
            elif (
                column is not None
                and column == profile.weight
                and pointer in ("/data/target", "/data/features")
            ):
                yield Problem(
                    pointer,
                    f"column {column!r} has the role weight, so it is no feature and no target; choose other "
                    "columns, or upload a version in which it has another role",
                )
            elif column == IMAGE and profile.images is not None and pointer != "/data/features":
                yield Problem(pointer, f"{IMAGE!r} holds the images; choose another column")
    if profile.images is not None and spec.required_data.features not in (None, (IMAGE,)):
        yield Problem("/data/features", f"the image is the whole input, so the only feature is {IMAGE!r}")


def _check_split(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    """Check that the split's column has a value in each row and enough groups; see `_check_folds`."""
    split_faults = list(split_problems(spec.required_data.split, profile))
    yield from (Problem(f"/data/split{problem.pointer}", problem.message) for problem in split_faults)
    split = resolved(spec.required_data.split, profile)
    groups = _groups_of(split, profile)
    if split.group is None or groups is None or groups >= MIN_GROUPS:
        yield from _check_folds(spec, profile, split, groups)


def problems_of_split(split: Split, profile: Profile) -> list[Problem]:
    """Return why the rows cannot be split in this way, with pointers into the split."""
    names = [column.name for column in profile.columns if not column.shape and column.type != "image"]
    chosen = {field: getattr(split, field) for field in ("group", "column", "time")}
    unknown = [
        Problem(f"/{field}", f"no column {name!r}; the columns are {', '.join(names[:20])}")
        for field, name in chosen.items()
        if name is not None and name not in names
    ]
    return unknown or list(split_problems(split, profile))


def split_problems(split: Split, profile: Profile) -> Iterator[Problem]:
    """Yield why rows cannot be split along a column, with pointers into the split.

    A column that does not exist is no problem here.
    """
    resolved_split = resolved(split, profile)
    missing = {column.name: column.missing for column in profile.columns}
    for field in ("group", "column", "time"):
        name = getattr(resolved_split, field)
        if name is not None and (rows := missing.get(name)):
            yield Problem(
                f"/{field}", f"column {name!r} has no value in {rows:,} rows; a split needs one in each row"
            )
    groups = _groups_of(resolved_split, profile)
    if resolved_split.group is not None and groups is not None and groups < MIN_GROUPS:
        by_role = (
            "" if split.group is not None else "; to split without it, set data.split.use_roles to false"
        )
        yield Problem("/group", few_groups(resolved_split.group, groups) + by_role)


def _groups_of(split: Split, profile: Profile) -> int | None:
    """Return the number of groups of a split, or None if it has none, or if the profile does not know it."""
    return next((column.distinct for column in profile.columns if column.name == split.group), None)


def _check_folds(
    spec: ExperimentSpec, profile: Profile, split: Split, groups: int | None
) -> Iterator[Problem]:
    """Check that folds do not mix the times of a resolved split, and that each can have a group."""
    evaluation = spec.search.evaluation if spec.search is not None else None
    if evaluation is None or evaluation.kind != "k_fold":
        return
    if split.group is not None and groups is not None and groups <= evaluation.folds:
        yield Problem(
            "/search/evaluation/folds",
            f"column {split.group!r} has {groups} different values; {evaluation.folds} folds and the test "
            f"part need at least {evaluation.folds + 1}",
        )
    if (reason := windows.folds_refusal(spec.required_data, profile)) is not None:
        yield Problem("/search/evaluation/kind", reason)
    # A spec that names the column itself is refused before its data are known.
    if split.time is not None and spec.required_data.split.time is None:
        yield Problem(
            "/search/evaluation/kind",
            f"k_fold would train on rows after the validation rows: column {split.time!r} has the role time. "
            "Use holdout, or set data.split.use_roles to false",
        )


def _check_preprocessing(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    options = spec.required_data.preprocessing
    columns = {column.name: column for column in profile.columns}
    features = feature_names(spec.required_data, profile)
    # Features that do not exist are reported by `_check_columns`.
    if spec.required_data.texts is not None and not (profile.has_pipeline and _has_text(features, columns)):
        yield Problem("/data/texts", "no feature of these data is a text; leave out data.texts")
    if options and not profile.has_pipeline:
        message = "only tables have preprocessing; upload the file again if this is an earlier table"
        yield Problem("/data/preprocessing", message)
        return
    for name, chosen in options.items():
        if name not in columns:
            reason: str | None = f"no column {name!r}; the columns are {', '.join([*columns][:20])}"
        elif name not in features:
            reason = f"column {name!r} is no feature of this experiment; leave out its options"
        else:
            reason = _option_refusal(columns[name], chosen, spec.texts)
        if reason is not None:
            yield Problem(f"/data/preprocessing/{escaped(name)}", reason)


def _has_text(features: Iterable[str], columns: Mapping[str, Column]) -> bool:
    return any(name in columns and columns[name].type == "text" for name in features)


def _option_refusal(column: Column, options: ColumnOptions, texts: TextEncode) -> str | None:
    """Return why a feature cannot have these options, or None if it can."""
    try:
        plan_column(column, options, texts)
    except ValueError as error:
        return str(error)
    return ngrams_refusal(column, options, texts)


def _check_measures(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    task = spec.required_data.task or profile.task
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
    if spec.model.info.own_names:
        # The code may name its metrics.
        return
    watched = measures.validation_names(spec.fit.metrics, task)
    for pointer, objective in spec.placed_objectives():
        if objective.metric not in watched:
            sentence = f"{objective.metric!r} is not measured; use one of {', '.join(watched)}"
            yield Problem(f"{pointer}/metric", sentence)
    yield from fit_checks.monitor_problems(spec, profile)


def value_problems(spec: ExperimentSpec) -> Iterator[Problem]:
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
    variants_by_problem: dict[Problem, list[str]] = {}
    for name, value, tried in variants:
        listed = variables(tried.model, profile)
        for problem in check_layout(spec.mesh, listed, tried.fit.batch_size):
            variants_by_problem.setdefault(problem, []).append(f"{name} = {value!r}")
    by_pointer: dict[str, Problem] = {}
    for problem, where in variants_by_problem.items():
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
            # Reported by `value_problems`.
            with suppress(ValidationError):
                yield parameter.name, value, apply_values(spec, {parameter.name: value})


def warnings(spec: ExperimentSpec, profile: Profile | None) -> list[Problem]:
    """Return settings that are valid but probably not intended."""
    if spec.model.info.trains_itself:
        return [*_search_warnings(spec)]
    return [
        *_unknown_memory_warnings(spec, profile),
        *_search_warnings(spec),
        *fit_checks.warnings(spec, profile),
        *_after_warnings(spec),
        *_device_warnings(spec),
    ]


def _unknown_memory_warnings(spec: ExperimentSpec, profile: Profile | None) -> Iterator[Problem]:
    checked = "the memory and the layout" if spec.mesh else "the memory"
    # Trees take the memory of the training rows, like the data set itself.
    if spec.model.info.layers is None and spec.model.info.by_gradient:
        yield warning(
            f"/model/{spec.model.named_by}",
            f"{checked} of {spec.model.info.name} cannot be computed before its first training, so the job "
            "may fail when it starts",
            "Run one training before a search, and read its memory in the tab System",
        )
    if profile is not None and roles_differ(spec, profile):
        yield warning(
            "/data",
            f"target, features or task are not those of the data set, so {checked} cannot be checked and "
            "the job may fail when it starts",
            "Run one training before a search, or upload a version of the data set with these roles",
        )


def _search_warnings(spec: ExperimentSpec) -> Iterator[Problem]:
    search = spec.search
    if search is None:
        return
    for pointer, objective in spec.placed_objectives():
        best = measures.direction(objective.metric)
        is_known = not spec.model.info.own_names or measures.is_known(objective.metric)
        if is_known and best != objective.direction:
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
    if (
        "epochs" in map(spec.model.info.fit_field, (row.name for row in search.space))
        and spec.fit.early_stopping is None
    ):
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
        and not spec.model.info.own_names
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
