"""Makes graphs of layers from models of user classes, so that a saved file does not need the classes.

Keras saves a class by its constructor's arguments and loads it by calling the constructor. For a subclass of
`keras.Model` it does not know these arguments unless the class has `get_config`. The layers compute the
outputs, and they can be saved without the class.
"""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import keras
import numpy as np

from workers.engine.models import keras_private
from workers.engine.models.graph import graph_of, has_graph
from workers.engine.models.keras_origin import is_of_keras


def call_as_graph(model: Any, x: Any) -> Any:
    """Return a model's outputs for symbolic rows, made by its layers if possible, else by the model.

    It is not possible if its method `call` uses variables of the model itself, or does something with the
    rows that is neither a layer nor an operation of Keras.

    Args:
        model: a built model.
        x: a symbolic tensor, or several as the model takes them.
    """
    if not any(_is_user_model(part) for part in keras_private.layers_inside(model)):
        return model(x)
    try:
        outputs = _call_graph(model if has_graph(model) else keras.Model(x, _call_method(model, x)), x)
        is_whole = _is_whole(keras.Model(x, outputs), model)
    # The method of a user may do anything with a symbolic tensor, and raise anything.
    except Exception:  # noqa: BLE001
        return model(x)
    return outputs if is_whole else model(x)


def _is_whole(graph: Any, model: Any) -> bool:
    """Return whether a graph has all that a model computes its outputs with.

    Weights may be used for losses alone. But those that an operation has as an argument are no part of the
    graph, and neither are the values that were computed from them.
    """
    if {id(variable) for variable in graph.weights} == {id(variable) for variable in model.weights}:
        return True
    return not any(
        isinstance(value, keras.Variable | np.ndarray | jax.Array)
        for calls in keras_private.calls_by_depth(graph)
        for call in calls
        for value in keras.tree.flatten(keras_private.arguments_of(call))
    )


def _is_user_model(part: Any) -> bool:
    return isinstance(part, keras.Model) and not is_of_keras(part)


def _call_graph(model: Any, x: Any) -> Any:
    """Call the layers of a functional model or a Sequential, and those of models inside likewise."""
    return keras_private.run_graph(graph_of(model), x, _called)


def _called(operation: Any) -> Callable[..., Any]:
    """Return how an operation in a graph is called: a model by its layers."""

    def call(*args: Any, **kwargs: Any) -> Any:
        # Keras passes `mask=None` to a model within a model.
        has_only_rows = len(args) == 1 and all(value is None for value in kwargs.values())
        is_model = isinstance(operation, keras.Model) and has_only_rows
        return call_as_graph(operation, args[0]) if is_model else operation(*args, **kwargs)

    return call


def _call_method(model: Any, x: Any) -> Any:
    """Call a model's own method, not the model, which would be one operation then.

    `training` is left open for the layers. Losses that the method adds are of no use in a saved model, and
    Keras refuses symbolic ones.
    """
    arguments = inspect.signature(model.call).parameters
    model.add_loss = lambda *_, **__: None
    try:
        return model.call(x, **({"training": None} if "training" in arguments else {}))
    finally:
        del model.add_loss
