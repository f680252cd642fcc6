"""Finds the installed packages that models run with, and whose versions therefore do not change."""

import functools
import importlib.metadata
import site
import sys
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOTS = (
    "google-re2", "jax", "jaxlib", "keras", "keras-tuner", "numpy", "openpyxl", "optuna", "orjson",
    "packaging", "pandas", "pillow", "psutil", "pyarrow", "pydantic", "scikit-learn", "scipy", "six",
    "threadpoolctl",
)  # fmt: skip
"""The packages that the runner and the engine import. Those that they require are added."""
PREFIXES = ("jax", "nvidia-")
"""JAX for GPUs has packages that it does not require; other versions of CUDA would hide its own."""


@functools.cache
def installed() -> dict[str, str]:
    """Return all packages of this interpreter: versions by name."""
    versions: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        # The first one on the path is the one that is imported.
        versions.setdefault(canonicalize_name(distribution.metadata["Name"]), distribution.version)
    return versions


@functools.cache
def locked() -> dict[str, str]:
    """Return the packages that an environment for a model must not change: versions by name."""
    present = installed()
    waiting = [name for name in present if name in ROOTS or name.startswith(PREFIXES)]
    versions: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        if name not in versions and name in present:
            versions[name] = present[name]
            waiting += _requirement_names(importlib.metadata.requires(name) or ())
    return dict(sorted(versions.items()))


def _requirement_names(lines: Iterable[str]) -> list[str]:
    requirements = map(Requirement, lines)
    return [
        canonicalize_name(requirement.name)
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    ]


def folders() -> list[str]:
    """Return the folders with this interpreter's packages."""
    names = [*site.getsitepackages(), *(path for path in sys.path if path.endswith("-packages"))]
    return [name for name in dict.fromkeys(names) if Path(name).is_dir()]
