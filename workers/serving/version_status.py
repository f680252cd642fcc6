"""A version's state, as TensorFlow Serving names it."""

from typing import Literal, NamedTuple

State = Literal["START", "LOADING", "AVAILABLE", "UNLOADING", "END"]


class VersionStatus(NamedTuple):
    """One version's state, and its error if it failed."""

    number: int
    state: State
    error: str | None = None
