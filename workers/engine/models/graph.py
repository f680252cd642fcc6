"""Finds the graph of a model: its layers and operations with their inputs and outputs."""

from typing import Any


def graph_of(model: Any) -> Any:
    """Return the functional model that has the graph of `model`: itself, or a private one of a Sequential."""
    return getattr(model, "_functional", None) or model
