"""What we served last, on disk: enough to start and answer while the dashboard is down."""

import os
from pathlib import Path

from pydantic import Field, ValidationError

from jobs.contracts.base import Frozen
from jobs.contracts.release import SignedRelease


class EndpointState(Frozen):
    """The release that answers, and the newest one if that is still on its way (or never got there)."""

    serving: SignedRelease | None = None
    newest: SignedRelease


class State(Frozen):
    """All endpoints by model. Signatures are checked again when it is read back."""

    version: int = 1
    endpoints: dict[str, EndpointState] = Field(default_factory=dict)


class StateFile:
    """The file, written atomically after every change."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> State:
        """Return what was written last; an empty state if there is none or it is not whole.

        Whatever is lost here the dashboard tells us again.
        """
        try:
            return State.model_validate_json(self._path.read_bytes())
        except (FileNotFoundError, ValidationError):
            return State()

    def write(self, state: State) -> None:
        """Replace the file, so that a reader after a crash sees the old or the new one whole."""
        fresh = self._path.with_suffix(".new")
        with fresh.open("wb") as file:
            file.write(state.model_dump_json(indent=1).encode())
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
