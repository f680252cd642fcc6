"""Checks that the model of user code can be saved and loaded, and finds the class that prevents it.

Keras saves a model as its config and its weights: an object is made again by its class from what `get_config`
returns. Whether that works is otherwise known only after a training.
"""

import inspect
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keras
import numpy as np

from jobs.spec.exports import STORED
from workers.engine.arrays import Array
from workers.engine.errors import BadCheckpoint, CodeFailure, CodeFitFailure, EngineError, affects_process
from workers.engine.models import keras_private
from workers.engine.models.code_models.code_build import CodeBuild, finished_model, finished_rows
from workers.engine.models.files import load_model, save_model
from workers.engine.models.keras_origin import is_of_keras
from workers.engine.models.own_code.failures import calling, cause_of, trace_of
from workers.engine.models.own_objects import objects_in
from workers.engine.models.variables import assign, values

TOLERANCE = 1e-4
"""How far the predictions of the loaded file may be from the model's own, relative to the largest."""
TOLERANCE_HALF = 2e-2
"""For models that compute in 16 bits, whose rounding depends on the form of the graph in the file."""

LAMBDA = (
    "Replace the Lambda by a class that inherits from keras.layers.Layer, or by operations of keras.ops: a "
    "function that uses imported modules, or variables of another function, is not complete in a file"
)
FUNCTION = (
    "Pass functions by a name that is defined with def at the top level of a file: not a lambda, and not a "
    "function inside another one"
)
WEIGHTS = (
    "Create layers and weights in __init__ or build(self, input_shape) of their class, not in call, and "
    "return the arguments of __init__ from get_config"
)

AGAIN = (
    "keep all that a layer computes with in weights (add_weight), or return it from get_config, and draw no "
    "random numbers in the code that builds the model without a seed"
)
IN_CALL = "compute predictions in the method call, not in predict_step or predict"


class NotSaved(CodeFailure):
    """The model cannot be saved, or its file cannot be loaded; the message names the class and the remedy."""

    code = "not_saved"


def check_saving(build: CodeBuild, again: CodeBuild, folder: Path, rows: Any) -> None:
    """Save the model as a training does, load the file, and compare its predictions with the model's own.

    Args:
        build: the model.
        again: another build of it, which gets its weights and is saved, and is not compiled afterwards.
        folder: for the file, which is removed.
        rows: rows of the data, (rows, …).

    Raises:
        NotSaved: that is not possible, or the predictions differ.
        CodeFitFailure: the model cannot predict the rows.
    """
    _copy_weights(build, again)
    model, path = finished_model(again, "dry_build"), folder / STORED.file_name("dry-build")
    try:
        with naming_cause(model):
            save_model(model, path)
        # After it was saved: a layer may have a state, with which the loaded file begins, too.
        expected, repeated = _own_predictions(build, rows), _own_predictions(build, rows)
        with naming_cause(model):
            found = np.asarray(load_model(path, folder).predict_on_batch(rows), np.float32)
    finally:
        path.unlink(missing_ok=True)
    if expected.shape != found.shape:
        raise NotSaved(
            f"the model predicts values of the shape {expected.shape}, but its file, which has only what "
            f"call computes, {found.shape}: {IN_CALL}"
        )
    # A model may not be defined for random rows, and a dropout that is never off has no two equal answers.
    is_defined, limit = np.isfinite(expected).all(), _limit(build.model, expected)
    if not is_defined or np.abs(expected - repeated).max() > limit:
        return
    difference = float(np.abs(expected - found).max())
    # `not … <=` instead of `>`: those of the file may be NaN.
    if not difference <= limit:
        raise NotSaved(
            f"the model is saved, but the loaded file predicts other values, by {difference:.3g}: {AGAIN}; "
            f"{IN_CALL}"
        )


def _copy_weights(build: CodeBuild, again: CodeBuild) -> None:
    """Give another build of a model its weights.

    Raises:
        NotSaved: it has others.
    """
    try:
        assign(again.model.variables, values(build.model.variables))
    except BadCheckpoint as error:
        raise NotSaved(
            f"the same hyperparameters build models with different weights ({error}): {AGAIN}"
        ) from error


def _own_predictions(build: CodeBuild, rows: Any) -> Array:
    """Return the final predictions for rows as a training measures them, not by the file."""
    with calling(CodeFitFailure, "predicting rows"):
        outputs = keras.tree.flatten(build.model.predict_on_batch(build.prepared(rows)))
        return finished_rows(np.asarray(outputs[0], np.float32), build.output, build.shape)


def _limit(model: Any, predictions: Array) -> float:
    """Return the largest difference from a model's predictions that rounding explains."""
    half = any("16" in str(layer.compute_dtype) for layer in keras_private.layers_inside(model))
    return (TOLERANCE_HALF if half else TOLERANCE) * max(float(np.abs(predictions).max()), 1.0)


@contextmanager
def naming_cause(model: Any) -> Iterator[None]:
    """Raise errors of saving or loading a model with the class that causes them, and what would do.

    Raises:
        NotSaved: there was an error.
        Exception: an error that affects the whole process.
    """
    try:
        yield
    except EngineError:
        raise
    # Methods of users run inside, which may raise anything.
    except Exception as error:
        if affects_process(error):
            raise
        raise NotSaved(explained(model, error), trace_of(error)) from error


def explained(model: Any, error: Exception) -> str:
    """Return why a model could not be saved or loaded: the class, the reason and the remedy."""
    parts = keras_private.layers_inside(model, include_self=False)
    for part in parts:
        # The parts of a graph are looked at themselves.
        if is_of_keras(part) and keras_private.has_layers(part):
            continue
        if (fault := _fault_of(part)) is not None:
            what, cause = fault
            return (
                f"the model cannot be {what}: {_described(part)}: {cause.rstrip('.')}. {_remedy(part, cause)}"
            )
    for part in parts:
        if isinstance(part, keras.layers.Lambda):
            cause = cause_of(error).rstrip(".")
            return f"the model cannot be loaded again: {_described(part)}: {cause}. {LAMBDA}"
        if _loses_arguments(part):
            return (
                f"the model cannot be loaded again: {_described(part)}: Keras does not store the arguments "
                f"of a keras.Model's constructor. {_get_config_for(part)}"
            )
    return f"the model cannot be saved and loaded again: {cause_of(error).rstrip('.')}. {WEIGHTS}"


def _fault_of(part: Any) -> tuple[str, str] | None:
    """Return what fails for a layer, to be saved or to be loaded again, and why; None if nothing does."""
    step = "saved"
    try:
        config = keras.saving.serialize_keras_object(part)
        json.dumps(config)
        step = "loaded again"
        with objects_in(config):
            keras.saving.deserialize_keras_object(config, safe_mode=False)
    except Exception as error:  # noqa: BLE001  the method or the constructor of a user
        return step, cause_of(error)
    return None


def _described(part: Any) -> str:
    return f"{type(part).__name__} ({part.name!r})"


def _loses_arguments(part: Any) -> bool:
    is_model = isinstance(part, keras.Model) and not is_of_keras(part)
    return is_model and "get_config" not in vars(type(part)) and bool(_arguments_of(type(part)))


def _arguments_of(kind: type) -> list[str]:
    """Return the names of the arguments of a constructor."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p.name for p in _parameters_of(kind) if p.kind in named and p.name != "name"]


def _parameters_of(kind: type) -> Sequence[inspect.Parameter]:
    return list(inspect.signature(vars(kind).get("__init__", kind.__init__)).parameters.values())[1:]  # type: ignore[misc]


def _remedy(part: Any, cause: str) -> str:
    kind = type(part)
    if isinstance(part, keras.layers.Lambda):
        return LAMBDA
    if is_of_keras(part):
        return FUNCTION
    if "<locals>" in kind.__qualname__:
        return f"Define the class {kind.__name__} at the top level of a file, not inside a function"
    if "variables" in cause and "received" in cause:
        return WEIGHTS
    return _get_config_for(part)


def _get_config_for(part: Any) -> str:
    """Return the methods that a layer's class lacks, as an example with its own arguments."""
    kind = type(part)
    takes_rest = any(p.kind is p.VAR_KEYWORD for p in _parameters_of(kind))
    kept = {name: _attribute_of(part, name) for name in _arguments_of(kind)}
    entries = "".join(f", {name!r}: self.{attribute or name}" for name, attribute in kept.items())
    stored = ", ".join(f"self.{name} = {name}" for name, attribute in kept.items() if not attribute)
    steps = [
        *(() if takes_rest else ("take **kwargs in __init__ and pass them to super().__init__(**kwargs)",)),
        *((f"store in __init__ first: {stored}",) if stored else ()),
    ]
    rest = "".join(f"{step}, and " for step in steps)
    return (
        f"In {kind.__name__}, {rest}add: def get_config(self): return {{**super().get_config(){entries}}}. "
        "An argument that is no number, text or list needs from_config too"
    )


def _attribute_of(part: Any, argument: str) -> str:
    """Return the name under which a layer keeps an argument of its constructor; empty if it does not."""
    # Without calling properties, which may raise.
    return next(
        (
            name
            for name in (argument, f"_{argument}")
            if inspect.getattr_static(part, name, inspect.Parameter.empty) is not inspect.Parameter.empty
        ),
        "",
    )
