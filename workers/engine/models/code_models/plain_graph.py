"""Makes graphs of layers from models of user classes, so that a saved file does not need the classes.

Keras saves a class by its constructor's arguments and loads it by calling the constructor. For a subclass of
`keras.Model` it does not know these arguments unless the class has `get_config`. The layers compute the
outputs, and they can be saved without the class.
"""

import inspect
from collections.abc import Callable
from typing import Any

import keras

from workers.engine.models import keras_private
from workers.engine.models.graph import graph_of, has_graph


def call_as_graph(model: Any, x: Any) -> Any:
    """Return a model's outputs for symbolic rows, made by its layers if possible, else by the model.

    It is not possible if its method `call` uses variables of the model itself, or does something with the
    rows that is neither a layer nor an operation of Keras.

    Args:
        model: a built model.
        x: a symbolic tensor, or several as the model takes them.
    """
    if not any(_is_of_user(part) for part in keras_private.layers_inside(model)):
        return model(x)
    call = _call_graph if has_graph(model) else _call_method
    try:
        outputs = call(model, x)
        found = {id(variable) for variable in keras.Model(x, outputs).weights}
    # The method of a user may do anything with a symbolic tensor, and raise anything.
    except Exception:  # noqa: BLE001
        return model(x)
    return outputs if found == {id(variable) for variable in model.weights} else model(x)


def _is_of_user(part: Any) -> bool:
    return isinstance(part, keras.Model) and not str(type(part).__module__).startswith("keras.")


def _call_graph(model: Any, x: Any) -> Any:
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
    # Not `model(x)`, which would make the whole model one operation. `training` is left open for the layers.
    arguments = inspect.signature(model.call).parameters
    return model.call(x, **({"training": None} if "training" in arguments else {}))
