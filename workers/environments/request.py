"""Identifies the virtual environment that code needs."""

import hashlib
import json
import platform
import sysconfig
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

from jobs.contracts.packages import checked, parsed
from workers.environments.engine_packages import locked
from workers.environments.failures import BuildFailed

LAYOUT = 1
"""Part of each digest: a new number where environments are built in another way."""


class EnvironmentRequest(NamedTuple):
    """The contents of an environment. Equal requests share one.

    Attributes:
        requirements: checked and sorted.
        python: the version of the interpreter.
        platform: the system and processor for which packages are built.
        constraints: versions that must not change, as requirements.
        for_engine: it is for a model, so the packages of this program are locked; a script may have others.
    """

    requirements: tuple[str, ...]
    python: str
    platform: str
    constraints: tuple[str, ...]
    for_engine: bool

    @classmethod
    def of(cls, requirements: Iterable[str], *, for_engine: bool, constraints: Iterable[str] = ()) -> Self:
        """Return the request for the interpreter of this process.

        Args:
            requirements: the lines of the code.
            for_engine: see above.
            constraints: further ones, of the operator.

        Raises:
            BadRequirement: a line is no requirement that can be installed.
            BuildFailed: a requirement contradicts a locked version.
        """
        wanted = checked(requirements)
        versions = locked() if for_engine else {}
        _check_locked(wanted, versions)
        # Locked versions have precedence over constraints of the operator.
        others = {line for line in constraints if parsed(line).name not in versions}
        return cls(
            wanted,
            platform.python_version(),
            sysconfig.get_platform(),
            (*sorted(f"{name}=={version}" for name, version in versions.items()), *sorted(others)),
            for_engine,
        )

    @property
    def digest(self) -> str:
        """The identity of the environment."""
        return hashlib.sha256(json.dumps([LAYOUT, *self]).encode()).hexdigest()


def _check_locked(wanted: Iterable[str], versions: Mapping[str, str]) -> None:
    for line in wanted:
        each = parsed(line)
        present = versions.get(each.name)
        applies = each.marker is None or each.marker.evaluate({"extra": ""})
        if present is not None and applies and not each.specifier.contains(present, prereleases=True):
            raise BuildFailed.conflict(
                f"{each.name}: the code asks for {line}, and models run with the version {present} of this "
                "installation"
            )
