"""Which model, and which of its versions, a request means."""

from typing import NamedTuple


class Target(NamedTuple):
    """A model's name with at most one of a version's number and a label."""

    model: str
    version: int | None = None
    label: str | None = None
