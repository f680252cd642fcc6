"""Names the model and version that a request addresses."""

from typing import NamedTuple


class Target(NamedTuple):
    """A model name, with at most one of a version number and a label."""

    model: str
    version: int | None = None
    label: str | None = None
