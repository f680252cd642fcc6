"""Declares a version that needs user code, and the settings for all such versions."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from jobs.messages.release import ReleasedCode
from workers.confinement.forking.client import ForkServer
from workers.serving.versions.child_process import ChildCommand


class CodeRefused(OSError):
    """User code cannot be started here. The text is the reason."""


class SandboxedModel(NamedTuple):
    """A version to load: its verified files on this machine.

    Attributes:
        name: the version's name, for the log.
        model: the model file.
        code: the code, as it was released.
        files: the code's files, each with its path in it.
    """

    name: str
    model: Path
    code: ReleasedCode
    files: Sequence[tuple[str, Path]]


class SandboxSettings(NamedTuple):
    """The settings for all children in sandboxes.

    Attributes:
        home: the folder with the server's state.
        command: the settings for ordinary children.
        memory_bytes: for each version, all its processes together.
        environments: the folder for environments with the code's packages.
        fork_server: returns the ordinary children's fork server; None if there is none.
    """

    home: Path
    command: ChildCommand
    memory_bytes: int
    environments: Path
    fork_server: Callable[[], Awaitable[ForkServer | None]]
