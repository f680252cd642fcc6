"""Saves the releases to disk, so that the server can restart and serve without the dashboard."""

import os
from pathlib import Path

from pydantic import Field, ValidationError

from jobs.messages.release import SignedRelease
from jobs.spec.base import Frozen


class EndpointState(Frozen):
    """The release that serves, and the newest one, which may still be loading or have failed."""

    serving: SignedRelease | None = None
    newest: SignedRelease


class State(Frozen):
    """All endpoints by model. Signatures are verified again when the state is loaded."""

    version: int = 1
    endpoints: dict[str, EndpointState] = Field(default_factory=dict)


class StateFile:
    """The state file, written atomically after every change."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> State:
        """Return the saved state; an empty one if the file is missing or invalid.

        The dashboard sends everything again that is lost here.
        """
        try:
            return State.model_validate_json(self._path.read_bytes())
        except (FileNotFoundError, ValidationError):
            return State()

    def write(self, state: State) -> None:
        """Replace the file atomically: after a crash, either the old or the new one is complete."""
        temporary = self._path.with_suffix(".new")
        with temporary.open("wb") as file:
            file.write(state.model_dump_json(indent=1).encode())
            # Otherwise the rename could reach the disk before the content.
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
