"""Finds the graph of a model: its layers and operations with their inputs and outputs."""

from typing import Any

from workers.engine.models import keras_private


def graph_of(model: Any) -> Any:
    """Return the functional model that has the graph of `model`: itself, or a private one of a Sequential."""
    return keras_private.functional_of(model) or model
