"""Declares virtual environments with the packages of code: their contents and states."""

from enum import StrEnum

from pydantic import Field

from jobs.contracts.base import Frozen

MAX_LOG = 200_000
"""Characters of the output of an installation that are stored: the last ones."""
MAX_PACKAGES = 1_000


class EnvironmentState(StrEnum):
    """The state of an environment on one worker."""

    BUILDING = "building"
    READY = "ready"
    FAILED = "failed"
    REMOVED = "removed"


class InstalledPackage(Frozen):
    """A package in an environment."""

    name: str
    version: str


class EnvironmentKey(Frozen):
    """An environment before it is built.

    Attributes:
        digest: of everything below.
        requirements: checked and sorted.
        python: the version of the interpreter.
        platform: the system and processor.
        for_engine: whether the versions of this program's packages are kept.
    """

    digest: str
    requirements: tuple[str, ...]
    python: str
    platform: str
    for_engine: bool


class EnvironmentFacts(EnvironmentKey):
    """A built environment."""

    packages: tuple[InstalledPackage, ...] = Field(description="installed for it, without those of Trainyard")
    bytes: int
    seconds: float = Field(description="that the build took")
    built: float = Field(description="seconds since 1970")
    installer: str = Field(description="uv or pip")
    source: str = Field(description="where the packages came from")
    level: str = Field(description="the level of the sandbox of the build")


class EnvironmentFailure(Frozen):
    """Why an environment could not be built."""

    code: str
    message: str
