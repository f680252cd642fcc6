"""Declares a version that needs code of users, and the settings of all of them."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from jobs.messages.release import ReleasedCode
from workers.confinement.forking.client import ForkServer
from workers.serving.versions.child_process import ChildCommand


class CodeRefused(OSError):
    """Code of users cannot be started here. The text is the reason."""


class SandboxedModel(NamedTuple):
    """A version to load: its verified files on this machine.

    Attributes:
        name: of the version, for the log.
        model: the model file.
        code: the code, as it was released.
        files: the files of the code, each with its path in it.
    """

    name: str
    model: Path
    code: ReleasedCode
    files: Sequence[tuple[str, Path]]


class SandboxSettings(NamedTuple):
    """The settings of all children in sandboxes.

    Attributes:
        home: the folder of the server's state.
        command: the settings of ordinary children.
        memory_bytes: of each version, all its processes together.
        environments: the folder of the environments with packages of code.
        fork_server: returns the fork server of ordinary children; None if there is none.
    """

    home: Path
    command: ChildCommand
    memory_bytes: int
    environments: Path
    fork_server: Callable[[], Awaitable[ForkServer | None]]
