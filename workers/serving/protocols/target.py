"""Names the model and version that a request addresses."""

from typing import NamedTuple


class Target(NamedTuple):
    """A model name, with at most one of a version number and a label."""

    model: str
    version: int | None = None
    label: str | None = None


def not_found(target: Target) -> str:
    """Return TensorFlow Serving's message for a model or version that does not exist."""
    if target.version is None:
        return f"Servable not found for request: Latest({target.model})"
    return f"Servable not found for request: Specific({target.model}, {target.version})"
