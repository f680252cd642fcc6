"""The state of a version, by the names of TensorFlow Serving."""

from typing import Literal, NamedTuple

State = Literal["START", "LOADING", "AVAILABLE", "UNLOADING", "END"]


class VersionStatus(NamedTuple):
    """The state of one version, and its error if it failed."""

    number: int
    state: State
    error: str | None = None
