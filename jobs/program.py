"""Finds this program's own files, its version, and the command that starts it.

The program runs from a checkout or from an installed wheel. A checkout has the folders `docs` and `templates`
beside the packages. A wheel has them in `webapp`: beside its packages are those of all other projects.
"""

import functools
import importlib.metadata
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The folder that contains the packages: the checkout, or the one with all installed packages."""
IS_CHECKOUT = (ROOT / "manage.py").is_file()


KEYLESS_VARIABLE = "TRAINYARD_WITHOUT_KEY"
"""Set for parts that sign nothing, and for their children. They make no secret key if there is none."""


def resource_folder(name: str) -> Path:
    """Return the folder `docs` or `templates`."""
    return ROOT / name if IS_CHECKOUT else ROOT / "webapp" / name


@functools.cache
def program_version() -> str:
    """Return the program's version."""
    # A checkout has no metadata, or only those of an older commit.
    if IS_CHECKOUT:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return str(project["version"])
    return importlib.metadata.version("trainyard")


def command_line(arguments: str) -> str:
    """Return the terminal line that runs a command of this program, for messages."""
    return f"{_start()} {arguments}"


@functools.cache
def _start() -> str:
    if not IS_CHECKOUT:
        return "trainyard"
    is_usual = Path(sys.prefix).resolve() == (ROOT / ".venv").resolve()
    return f"{'.venv/bin/python' if is_usual else 'python'} manage.py"
