"""Identifies the virtual environment that code needs."""

import hashlib
import json
import platform
import sysconfig
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

from jobs.messages.environments import InstalledPackage, digest_of_set, python_minor
from jobs.messages.task import OwnCode
from jobs.spec.checks.packages import parse_requirement, parse_requirements
from workers.confinement.environments.engine_packages import locked
from workers.confinement.environments.failures import BuildFailed

LAYOUT = 2
"""Part of each digest: a new number where environments are built in another way."""


class EnvironmentRequest(NamedTuple):
    """Everything that an environment contains. Equal requests share one.

    Attributes:
        requirements: checked and sorted.
        python: the interpreter's version.
        platform: the system and processor for which packages are built.
        constraints: versions that must not change, as requirements.
        for_engine: it is for a model, so this program's packages are locked; a script may have others.
        resolution: another one is another environment, whose versions are chosen again.
        packages: the exact packages to install; None for those that the installer chooses.
    """

    requirements: tuple[str, ...]
    python: str
    platform: str
    constraints: tuple[str, ...]
    for_engine: bool
    resolution: str = ""
    packages: tuple[InstalledPackage, ...] | None = None

    @classmethod
    def for_this_interpreter(
        cls,
        needed: "NeededPackages",
        *,
        constraints: Iterable[str] = (),
    ) -> Self:
        """Return the request for the interpreter that runs this process.

        Args:
            needed: the packages.
            constraints: further ones, from the operator.

        Raises:
            BadRequirement: a line is no requirement that can be installed.
            BuildFailed: a requirement contradicts a locked version.
        """
        requirements = parse_requirements(needed.requirements)
        versions = locked() if needed.for_engine else {}
        _check_locked(requirements, versions)
        # Locked versions have precedence over constraints of the operator.
        others = {line for line in constraints if parse_requirement(line).name not in versions}
        return cls(
            requirements,
            platform.python_version(),
            sysconfig.get_platform(),
            (*sorted(f"{name}=={version}" for name, version in versions.items()), *sorted(others)),
            needed.for_engine,
            needed.resolution,
            needed.packages,
        )

    @property
    def base(self) -> str:
        """The same for all environments that fit these requirements, whatever versions were chosen."""
        parts = [LAYOUT, self.requirements, self.python, self.platform, self.constraints, self.for_engine]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def digest(self) -> str:
        """The environment's identity."""
        # With exact packages it does not matter how they were chosen.
        choice = self.resolution if self.installed is None else f"=={self.installed}"
        return hashlib.sha256(f"{self.base} {choice}".encode()).hexdigest() if choice else self.base

    @property
    def installed(self) -> str | None:
        """The exact packages' digest; None without any."""
        return None if self.packages is None else digest_of_set(self.packages)

    @property
    def lines(self) -> tuple[str, ...]:
        """The requirements for the installer."""
        if self.packages is None:
            return self.requirements
        return tuple(f"{package.name}=={package.version}" for package in self.packages)


class NeededPackages(NamedTuple):
    """The packages that code needs.

    Attributes:
        requirements: the lines in the code.
        for_engine: whether models run with them, and so with this program's packages.
        resolution, packages: see `EnvironmentRequest`.
    """

    requirements: tuple[str, ...]
    for_engine: bool
    resolution: str = ""
    packages: tuple[InstalledPackage, ...] | None = None

    @classmethod
    def for_code(cls, code: OwnCode, *, for_engine: bool) -> Self:
        """Return the packages that a task's code needs on this machine."""
        python = python_minor(platform.python_version())
        packages = code.wanted_packages(python, sysconfig.get_platform(), for_engine=for_engine)
        return cls(code.requirements, for_engine, code.resolution, packages)


def _check_locked(lines: Iterable[str], versions: Mapping[str, str]) -> None:
    for line in lines:
        requirement = parse_requirement(line)
        present = versions.get(requirement.name)
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if present is not None and applies and not requirement.specifier.contains(present, prereleases=True):
            raise BuildFailed.conflict(
                f"{requirement.name}: the code asks for {line}, and models run with the version {present} of "
                "this installation"
            )
