"""Distinguishes parts of Keras from parts of user code and of other packages, by their modules."""

import inspect
from typing import Any


def is_keras_module(name: Any) -> bool:
    """Return whether a module with this name is in the package `keras`; a file may name any value."""
    return isinstance(name, str) and f"{name}.".startswith("keras.")


def is_of_keras(part: Any) -> bool:
    """Return whether Keras defines a layer, loss or metric: an instance, a class, a function or a name."""
    return isinstance(part, str) or is_keras_module(definition_of(part).__module__)


def definition_of(part: Any) -> Any:
    """Return the class or function that defines a part of a model."""
    return part if inspect.isfunction(part) or inspect.isclass(part) else type(part)
