"""Finds a model's graph: its layers and operations with their inputs and outputs."""

from typing import Any

import keras

from workers.engine.models import keras_private


def graph_of(model: Any) -> Any:
    """Return the functional model with the same graph as `model`: itself, or a Sequential's private one."""
    return keras_private.functional_of(model) or model


def has_graph(model: Any) -> bool:
    """Return whether a graph of layers computes the model, not a method `call` of its class."""
    if isinstance(model, keras.Sequential):
        return type(model).call is keras.Sequential.call and keras_private.functional_of(model) is not None
    return isinstance(model, keras_private.Functional) and type(model).call is keras_private.Functional.call
