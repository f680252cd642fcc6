"""Declares virtual environments with the packages for code: their contents and states."""

import hashlib
import json
from collections.abc import Iterable
from enum import StrEnum

from pydantic import Field

from jobs.spec.base import Frozen

MAX_LOG = 200_000
"""How many characters of an installation's output are stored: the last ones."""
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
    digest: str = Field(
        default="",
        description="Of its installed files; empty if it was built from its source, since builds differ.",
    )


def digest_of_set(packages: Iterable[InstalledPackage]) -> str:
    """Compute a digest that identifies a set of installed packages."""
    lines = sorted([package.name, package.version, package.digest] for package in packages)
    return hashlib.sha256(json.dumps(lines).encode()).hexdigest()


class InstalledSet(Frozen):
    """The packages that were installed for some requirements.

    Attributes:
        python: the Python version without its last number, such as `3.13`.
        platform: the system and processor.
        for_engine: whether this program's packages keep their versions.
        packages: sorted by name.
    """

    python: str
    platform: str
    for_engine: bool
    packages: tuple[InstalledPackage, ...]

    @property
    def digest(self) -> str:
        """A digest that identifies the packages, whatever the Python."""
        return digest_of_set(self.packages)


class PackageChoice(Frozen):
    """The code whose runs have the same packages.

    Attributes:
        requirements: its requirements' digest.
        resolution: changes when a person has the versions chosen again.
    """

    requirements: str
    resolution: str


def python_minor(version: str) -> str:
    """Drop the last number from a Python version: the same packages fit."""
    return ".".join(version.split(".")[:2])


class EnvironmentKey(Frozen):
    """An environment before it is built.

    Attributes:
        digest: computed from everything below.
        requirements: checked and sorted.
        python: the interpreter's version.
        platform: the system and processor.
        for_engine: whether this program's packages keep their versions.
        base: the same for all environments with these requirements, whatever versions were found for them.
    """

    digest: str
    requirements: tuple[str, ...]
    python: str
    platform: str
    for_engine: bool
    base: str = ""


class EnvironmentFacts(EnvironmentKey):
    """A built environment."""

    packages: tuple[InstalledPackage, ...] = Field(description="installed for it, without those of Trainyard")
    bytes: int
    seconds: float = Field(description="that the build took")
    built: float = Field(description="seconds since 1970")
    installer: str = Field(description="uv, or pip in records of earlier releases")
    source: str = Field(description="where the packages came from")
    level: str = Field(description="the level of the sandbox of the build")
    recorded: tuple[InstalledPackage, ...] | None = Field(
        default=None,
        description="the set that it was built from; those that are present already are not installed again",
    )

    @property
    def installed(self) -> str:
        """The digest of the package set that a run in it has."""
        return self.as_set().digest

    def as_set(self) -> InstalledSet:
        """Return the package set that a run in it has."""
        return InstalledSet(
            python=python_minor(self.python),
            platform=self.platform,
            for_engine=self.for_engine,
            packages=self.packages if self.recorded is None else self.recorded,
        )


class EnvironmentFailure(Frozen):
    """Why an environment could not be built."""

    code: str
    message: str
