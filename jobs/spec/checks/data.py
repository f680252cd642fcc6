"""Checks a spec against its data set's profile.

A problem would make a run fail, so a spec with problems cannot be submitted. Each has a JSON pointer into the
spec. `jobs.spec.checks.warnings` points out settings that are valid but probably not intended.
"""

from collections.abc import Iterable, Iterator, Mapping

from pydantic import ValidationError

from jobs.spec.checks import fit as fit_checks
from jobs.spec.checks import layouts, overrides
from jobs.spec.checks.split import check_split
from jobs.spec.data import windows
from jobs.spec.data.column_plans import ngrams_refusal, plan_column
from jobs.spec.data.columns import ColumnOptions, TextEncode
from jobs.spec.data.encoding import (
    encoded,
    feature_names,
    roles_differ,
    size_refusal,
    width_in_memory,
)
from jobs.spec.data.images import IMAGE
from jobs.spec.data.profile import Column, Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem, escaped, first
from jobs.spec.sections import measures
from jobs.spec.sections.model import model_of
from jobs.spec.space.probes import configurations
from jobs.spec.space.search_space import Values
from jobs.spec.space.searchable import TEMPLATE
from jobs.spec.space.values import apply_values
from jobs.spec.templates import TEMPLATES

TRAINING_ONLY = ("seed", "shuffle", "epochs", "steps_per_execution")
"""Hyperparameters that change neither the model nor the optimizer."""


def problems(spec: ExperimentSpec, profile: Profile) -> list[Problem]:
    """Return the settings in `spec` that cannot work with the data that `profile` describes."""
    if spec.model.info.trains_itself:
        return [*_check_columns(spec, profile), *check_split(spec, profile)]
    problems_so_far = [
        *_check_columns(spec, profile),
        *check_split(spec, profile),
        *_check_preprocessing(spec, profile),
        *_check_measures(spec, profile),
    ]
    uploaded, described = profile, encoded(spec, profile)
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
    return [*of_values, *layouts.problems(spec, uploaded), *overrides.problems(spec, uploaded)]


def _check_size(spec: ExperimentSpec, profile: Profile, described: Profile) -> Iterator[Problem]:
    """Check the size of the encoded columns, with their rows in all windows."""
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
