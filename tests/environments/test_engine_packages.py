"""The packages that the engine imports keep their versions."""

import ast
import importlib.metadata
import sys

from packaging.utils import canonicalize_name

from workers.confinement.environments.engine_packages import locked
from workers.confinement.isolation.view import CODE_ROOT

FOLDERS = ("workers/engine", "workers/runner", "workers/features", "jobs/spec", "jobs/kinds")
LEFT_OUT = {"jobs", "workers", "django", "trainyard_report"}
"""Not packages of others, or not imported by runners."""


def imported() -> set[str]:
    packages = set()
    for folder in FOLDERS:
        for file in (CODE_ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Import):
                    packages |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    packages.add(node.module.partition(".")[0])
    return packages - LEFT_OUT - set(sys.stdlib_module_names)


def test_every_package_that_a_runner_imports_is_locked() -> None:
    packages = importlib.metadata.packages_distributions()
    needed = {canonicalize_name(packages[name][0]) for name in imported() if name in packages}
    assert needed - set(locked()) == set()


def test_what_locked_packages_require_is_locked_too() -> None:
    assert {"keras", "jax", "numpy", "pydantic", "pydantic-core", "h5py"} <= set(locked())
    assert "django" not in locked()
