"""Declares the files of a version that needs code of users."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from jobs.contracts.release import ReleasedCode


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
