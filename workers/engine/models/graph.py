"""Finds a model's graph: its layers and operations with their inputs and outputs."""

from typing import Any

from workers.engine.models import keras_private


def graph_of(model: Any) -> Any:
    """Return the functional model with the same graph as `model`: itself, or a Sequential's private one."""
    return keras_private.functional_of(model) or model
