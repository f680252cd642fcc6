"""Makes the model for a fine-tuning: a stored model, frozen up to a layer, with its own or a new head.

Layers are numbered in the order in which Keras lists them, those in an inner model in its place. The
head is the last layer with weights, and what follows it.
"""

import tempfile
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import keras

from jobs.spec.checks import patterns
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.variables import head_units
from jobs.spec.sections.precision import Policy, PrecisionSpec
from jobs.spec.sections.version_model import ALL, NOTHING, FineTuneArgs
from workers.engine.errors import BadModel, BadSpec
from workers.engine.models import keras_private
from workers.engine.models.augment import augmentation, seeded_layers
from workers.engine.models.base_models import path_of
from workers.engine.models.files import load_model
from workers.engine.models.graph import graph_of
from workers.engine.models.head import ACTIVATIONS, head
from workers.engine.models.initial_values import InitialValues
from workers.engine.models.optimizer import RATE_FACTOR_ARGUMENT
from workers.engine.models.precision import building_policy, policy_of, to_float8
from workers.engine.models.recast import Place, layers_at_ends, load_recast, placed_layers
from workers.engine.models.scaling import Scaling
from workers.engine.models.width_padding import Widths
from workers.model_process.library_messages import plain_message

WITHOUT_TRAINING = ("Normalization",)
"""Layers whose variables are statistics: never the head."""

TRAINABLE = ("float32", "mixed_float16", "mixed_bfloat16")
"""Policies that layers keep if the experiment chooses none."""


class Part(NamedTuple):
    """A layer that contains no other model, with its name after the surrounding models' names."""

    path: str
    layer: Any


def fine_tuned(
    spec: ExperimentSpec, profile: Profile, scaling: Scaling, *, name: str, seed: int, augmented: bool
) -> tuple[Any, InitialValues]:
    """Return the model and its initial values: stored ones, but for a new head; see `build_restartable`.

    Raises:
        BadModel: the version's file cannot be loaded.
        BadSpec: the version does not suit these data or arguments.
    """
    args = cast("FineTuneArgs", spec.model.resolved())
    base = _loaded(path_of(spec.model.weights_digest), spec.precision)
    stored = {id(variable) for variable in base.variables}
    _check_input(base, profile)
    ends = layers_at_ends(base)
    # An earlier fine-tuning may have frozen some.
    base.trainable = True
    # As in `build_restartable`: variables of a new head have no values before the end of this scope.
    with keras.StatelessScope():
        model, parts = _with_head(base, args, profile, scaling, name, spec.precision)
        ends |= layers_at_ends(model)
        to_float8(model, lambda layer: _policy_at(layer, spec.precision, ends))
        _freeze(parts, args)
        if augmented:
            model = _augmented(model, spec, profile, scaling)
        start = InitialValues(seeded_layers(model), stored)
        start.set_up(seed)
    # Random generators of the stored layers have values already.
    start.redraw(seed, Widths())
    if not model.trainable_variables:
        raise BadSpec("no layer of this version has weights that can be trained; use head on_top")
    return model, start


def _loaded(path: Path, precision: PrecisionSpec) -> Any:
    try:
        with tempfile.TemporaryDirectory(prefix="base-") as folder:
            model = load_model(path, Path(folder))
            policies = _changed_policies(model, precision)
            return load_recast(path, Path(folder), policies.get) if policies else model
    # The version was valid when it was registered, so this is another release of Keras, or a damaged disk.
    except (ValueError, TypeError, KeyError, OSError, ImportError, AttributeError, RecursionError) as error:
        raise BadModel(f"Keras cannot load the version: {plain_message(error)}") from error


def _changed_policies(model: Any, precision: PrecisionSpec) -> dict[Place, str]:
    """Return the policies of the layers that do not keep the one with which they were saved.

    Under float32, the default, all keep it that can be trained as they are.
    """
    ends, changed = layers_at_ends(model), {}
    for place, layer in placed_layers(model):
        wanted = building_policy(_policy_at(layer, precision, ends))
        saved = layer.dtype_policy.name
        keeps = wanted == "float32" and saved in TRAINABLE and not _is_overridden(layer.name, precision)
        if saved != wanted and not keeps:
            changed[place] = wanted
    return changed


def _policy_at(layer: Any, precision: PrecisionSpec, ends: Container[int]) -> Policy:
    """Return a layer's policy: at both ends of the model it is never below float32, unless overridden."""
    policy = policy_of(layer.name, precision)
    is_end = id(layer) in ends and not _is_overridden(layer.name, precision)
    return "float32" if is_end and policy != "float64" else policy


def _is_overridden(name: str, precision: PrecisionSpec) -> bool:
    return any(patterns.found_in(override.match, name) for override in precision.overrides)


def _check_input(base: Any, profile: Profile) -> None:
    if len(base.inputs) != 1 or len(base.outputs) != 1:
        raise BadSpec(
            f"the version has {len(base.inputs)} inputs and {len(base.outputs)} outputs; only models with "
            "one of each can be trained here"
        )
    expected, actual = tuple(base.inputs[0].shape[1:]), profile.input_shape
    if len(expected) != len(actual) or any(w not in (None, g) for w, g in zip(expected, actual, strict=True)):
        raise BadSpec(f"the version takes rows of shape {expected}, but these data have {actual}")


def parts_of(model: Any, prefix: str = "") -> Iterator[Part]:
    """Yield a model's layers in order; an inner model is replaced by its layers."""
    for layer in model.layers:
        if isinstance(layer, keras.Model) and layer.layers:
            yield from parts_of(layer, f"{prefix}{layer.name}/")
        elif not isinstance(layer, keras.layers.InputLayer):
            yield Part(prefix + layer.name, layer)


def _with_head(
    base: Any,
    args: FineTuneArgs,
    profile: Profile,
    scaling: Scaling,
    name: str,
    precision: PrecisionSpec,
) -> tuple[Any, list[Part]]:
    """Return the model `m_<name>` with the head that is asked for, and the layers before the head."""
    parts = list(parts_of(base))
    last = max((i for i, part in enumerate(parts) if _has_weights(part.layer)), default=None)
    if args.head == "keep":
        if last is None:
            raise BadSpec("the version has no layer with weights; use head on_top")
        _check_output(base, profile)
        base.name = f"m_{name}"
        return base, parts[:last]
    features = base.outputs[0] if args.head == "on_top" else _input_of_head(parts, last)
    body = keras.Model(base.inputs, features)
    names = {layer.name for layer in body.layers}
    outputs = head(features, profile, scaling, taken=names, dtype=policy_of("output", precision))
    return keras.Model(base.inputs, outputs, name=f"m_{name}"), list(parts_of(body))


def _has_weights(layer: Any) -> bool:
    return bool(layer.weights) and type(layer).__name__ not in WITHOUT_TRAINING


def _input_of_head(parts: list[Part], last: int | None) -> Any:
    """Return the tensor that the head reads.

    Raises:
        BadSpec: the head cannot be replaced.
    """
    if last is None:
        raise BadSpec("the version has no layer with weights to replace; use head on_top")
    path, layer = parts[last]
    if "/" in path:
        raise BadSpec(
            f"the last layer with weights, {path}, is part of a model inside the version and cannot be "
            "replaced; use head on_top"
        )
    tensors = keras.tree.flatten(layer.input) if len(keras_private.calls_of(layer)) == 1 else []
    if len(tensors) != 1:
        raise BadSpec(f"the last layer with weights, {path}, has several inputs; use head on_top")
    return tensors[0]


def _check_output(base: Any, profile: Profile) -> None:
    """Check that a kept head predicts the data's targets."""
    shape, units = tuple(base.outputs[0].shape[1:]), head_units(profile)
    if shape != (units,):
        raise BadSpec(
            f"the version returns {shape} for each row, but these data need ({units},); use head new"
        )
    activation = _last_activation(base)
    if ACTIVATIONS[profile.task] != "linear" and activation == "linear":
        raise BadSpec(
            "the version returns numbers that are no probabilities, without a softmax; use head new"
        )


def _last_activation(model: Any) -> str:
    """Return which function makes a model's output, by name; empty if it is not a layer's."""
    operation = keras_private.operation_of(graph_of(model).outputs[0])
    if isinstance(operation, keras.Model):
        return _last_activation(operation)
    return str(getattr(getattr(operation, "activation", None), "__name__", ""))


def _freeze(parts: list[Part], args: FineTuneArgs) -> None:
    """Freeze layers up to one, and mark all for the learning rate.

    A frozen batch normalization also keeps its statistics.
    """
    for part in parts[: _frozen_count([part.path for part in parts], args.freeze_to)]:
        part.layer.trainable = False
    for part in parts:
        setattr(part.layer, RATE_FACTOR_ARGUMENT, "learning_rate_factor")


def _frozen_count(paths: list[str], freeze_to: str) -> int:
    if freeze_to in (NOTHING, ALL):
        return 0 if freeze_to == NOTHING else len(paths)
    # A model inside the version is named for all of its layers.
    matching = [i for i, path in enumerate(paths) if path == freeze_to or path.startswith(f"{freeze_to}/")]
    if not matching:
        last_paths = ", ".join(paths[-20:])
        raise BadSpec(f"no layer before the head is called {freeze_to!r}; the last ones are {last_paths}")
    return matching[-1] + 1


def _augmented(model: Any, spec: ExperimentSpec, profile: Profile, scaling: Scaling) -> Any:
    if spec.fit.augmentation is None:
        return model
    if profile.kind != "image":
        raise BadSpec(f"augmentation needs images, but this data set has {profile.kind}s")
    if (layer := augmentation(spec.fit.augmentation, scaling.x_range)) is None:
        return model
    inputs = keras.Input(model.inputs[0].shape[1:], dtype="float32", name="augmentation_input")
    # The same layers on another input, so that their order and their variables are those of the saved model.
    outputs = keras_private.run_graph(graph_of(model), layer(inputs))
    return keras.Model(inputs, keras.tree.flatten(outputs)[0], name=model.name)
