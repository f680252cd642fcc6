"""Checks whether a registered version can be trained further with given data.

Everything is known before a model is built: from the version's signature and layer summary.
"""

from collections.abc import Iterator
from typing import Any

from jobs.spec.checks import overrides
from jobs.spec.data.encoding import encoded, roles_differ
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.base_version import BaseVersion
from jobs.spec.plan.fine_tuning import arguments
from jobs.spec.plan.variables import head_units
from jobs.spec.problems import Problem, warning
from jobs.spec.sections.version_model import ALL, FineTuneArgs
from jobs.spec.signature import Signature

INTEGERS = frozenset({"int8", "uint8", "int4"})
"""Types that quantized weights have."""
MAX_NAMED = 20


def problems(spec: ExperimentSpec, profile: Profile | None, base: BaseVersion) -> list[Problem]:
    """Return why the version cannot be trained further as the spec wants it.

    Args:
        spec: the experiment.
        profile: its data's profile; None until the data set is ready.
        base: the version.
    """
    faults = [
        *_version_problems(base),
        *_data_option_problems(spec, base),
        *overrides.problems_of_version(spec.precision, base),
    ]
    if profile is not None and base.signature is not None:
        faults += _input_problems(spec, profile, base, base.signature)
    for pointer, args in _tried(spec):
        faults += _layer_problems(pointer, args, base)
        if profile is not None and base.signature is not None and not roles_differ(spec, profile):
            faults += _head_problems(pointer, args, profile, base, base.signature)
    return list(dict.fromkeys(faults))


def warnings(spec: ExperimentSpec, profile: Profile | None, base: BaseVersion) -> list[Problem]:
    """Return settings that are valid but probably not intended."""
    warnings_so_far = []
    if profile is not None and profile.has_pipeline and profile.images is None and not _columns(base):
        names = ", ".join(encoded(spec, profile).features[:MAX_NAMED])
        warnings_so_far.append(
            warning(
                "/model/model",
                f"{base.name} does not know the names of columns, so they are given to it in the order "
                f"{names}, without normalization",
                "Check that it was trained on them in this order; data.features sets another one",
            )
        )
    args, searched = arguments(spec), dict(_searched(spec))
    is_fixed = args is not None and args.freeze_to == ALL and "freeze_to" not in searched
    if is_fixed and "learning_rate_factor" in searched:
        warnings_so_far.append(
            warning(
                "/search/space",
                "learning_rate_factor has no effect, since all layers before the head are frozen",
                "Freeze fewer layers, or search learning_rate",
            )
        )
    return warnings_so_far


def _version_problems(base: BaseVersion) -> Iterator[Problem]:
    if base.signature is None:
        yield Problem("/model/model", f"{base.name} was not validated, so its inputs are unknown")
        return
    inputs, outputs = len(base.signature.inputs), len(base.signature.outputs)
    if (inputs, outputs) != (1, 1):
        yield Problem(
            "/model/model",
            f"{base.name} has {inputs} inputs and {outputs} outputs; only models with one of each can be "
            "trained further",
        )
    if any(INTEGERS.intersection(layer.types) for layer in base.layers):
        yield Problem(
            "/model/model",
            f"{base.name} is quantized, and whole numbers cannot be trained; choose the version that it was "
            "made from",
        )


def _columns(base: BaseVersion) -> dict[str, Any]:
    columns = base.signature.columns if base.signature is not None else ()
    return {column.name: column.type for column in columns}


def _data_option_problems(spec: ExperimentSpec, base: BaseVersion) -> Iterator[Problem]:
    """Yield data options without effect, since the version brings its columns' pipeline."""
    if not _columns(base):
        return
    for field in ("features", "preprocessing", "texts"):
        if getattr(spec.required_data, field):
            yield Problem(
                f"/data/{field}",
                f"has no effect, since {base.name} encodes its own columns as it did before; leave it out",
            )


def _input_problems(
    spec: ExperimentSpec, profile: Profile, base: BaseVersion, signature: Signature
) -> Iterator[Problem]:
    if columns := _columns(base):
        yield from _column_problems(spec, profile, base, columns)
    if not columns or profile.images is not None:
        described = encoded(spec, profile)
        expected = signature.inputs[0].shape
        # Under other features of arrays, the profile does not describe the input.
        if not roles_differ(spec, profile) and not _fits_shape(described.input_shape, expected):
            yield Problem(
                "/model/model",
                f"{base.name} takes rows of shape {_shape(expected)}, but these data have "
                f"{_shape(described.input_shape)}",
            )
        return
    window = signature.window
    requested = spec.required_data.window
    if (window is None) != (requested is None) or (window and requested and window.rows != requested.rows):
        takes = "single rows" if window is None else f"windows of {window.rows} rows"
        yield Problem("/data/window", f"{base.name} takes {takes}; set data.window accordingly")


def _column_problems(
    spec: ExperimentSpec, profile: Profile, base: BaseVersion, columns: dict[str, Any]
) -> Iterator[Problem]:
    types = {column.name: column.type for column in profile.columns} if profile.has_pipeline else {}
    target = spec.required_data.target or profile.target
    for name, kind in columns.items():
        if name not in types:
            have = ", ".join([*types][:MAX_NAMED]) or "arrays without names"
            yield Problem(
                "/data/dataset",
                f"{base.name} takes the column {name!r}, which these data lack; they have {have}",
            )
        elif name == target:
            yield Problem(
                "/data/target", f"{base.name} takes the column {name!r}, so it cannot be the target"
            )
        elif types[name] is not None and types[name] != kind:
            yield Problem(
                "/data/dataset",
                f"column {name!r} is of type {types[name]}, but {base.name} takes it as {kind}",
            )


def _fits_shape(shape: tuple[int, ...], expected: tuple[int | None, ...]) -> bool:
    return len(shape) == len(expected) and all(
        width in (None, size) for size, width in zip(shape, expected, strict=True)
    )


def _shape(sizes: tuple[int | None, ...]) -> str:
    return " × ".join("any" if size is None else str(size) for size in sizes) or "one number"


def _searched(spec: ExperimentSpec) -> Iterator[tuple[str, tuple[int, list[Any]]]]:
    """Yield the searched arguments for fine-tuning, each with its place and values."""
    for i, parameter in enumerate(spec.search.space if spec.search is not None else ()):
        if parameter.name in FineTuneArgs.model_fields:
            values = parameter.grid() if parameter.name != "learning_rate_factor" else []
            yield parameter.name, (i, list(values))


def _tried(spec: ExperimentSpec) -> Iterator[tuple[dict[str, str], FineTuneArgs]]:
    """Yield the arguments that are tried, each with the pointers to `freeze_to` and `head`."""
    args, searched = arguments(spec), dict(_searched(spec))
    if args is None:
        return
    pointers = {
        name: f"/search/space/{searched[name][0]}" if name in searched else f"/model/args/{name}"
        for name in ("freeze_to", "head")
    }
    for head in searched["head"][1] if "head" in searched else [args.head]:
        for freeze_to in searched["freeze_to"][1] if "freeze_to" in searched else [args.freeze_to]:
            # Values of other types are reported by `checks.data`.
            if head in ("keep", "new", "on_top") and isinstance(freeze_to, str):
                yield pointers, args.model_copy(update={"head": head, "freeze_to": freeze_to})


def _layer_problems(pointers: dict[str, str], args: FineTuneArgs, base: BaseVersion) -> Iterator[Problem]:
    if not base.layers:
        return
    if base.head is None and args.head != "on_top":
        yield Problem(pointers["head"], f"{base.name} has no layer with weights; use on_top")
        return
    if base.frozen(args) is None:
        before = base.layers_before_head(args)
        names = ", ".join(layer.path for layer in before[-MAX_NAMED:])
        more = f"the last {MAX_NAMED} are" if len(before) > MAX_NAMED else "they are"
        yield Problem(
            pointers["freeze_to"],
            f"{base.name} has no layer {args.freeze_to!r} before its head; {more} {names}",
        )
    if args.head == "new" and base.head is not None and "/" in base.layers[base.head].path:
        path = base.layers[base.head].path
        yield Problem(
            pointers["head"],
            f"the last layer with weights of {base.name}, {path}, is part of a model inside it and cannot be "
            "replaced; use on_top",
        )


def _head_problems(
    pointers: dict[str, str], args: FineTuneArgs, profile: Profile, base: BaseVersion, signature: Signature
) -> Iterator[Problem]:
    """Yield why the head cannot be kept."""
    if args.head != "keep":
        return
    shape, labels = signature.outputs[0].shape, profile.class_labels
    if base.task is not None and base.task != profile.task:
        reason = f"{base.name} was trained for {base.task}, and these data are {profile.task}"
    elif shape != (head_units(profile),):
        reason = (
            f"{base.name} returns {_shape(shape)} for each row, but these data need {head_units(profile)}"
        )
    elif base.class_labels and labels and base.class_labels != labels:
        reason = (
            f"{base.name} has the classes {_joined(base.class_labels)}, and these data have {_joined(labels)}"
        )
    else:
        return
    yield Problem(pointers["head"], f"{reason}; use head new")


def _joined(labels: tuple[str, ...]) -> str:
    return ", ".join(labels[:MAX_NAMED])
