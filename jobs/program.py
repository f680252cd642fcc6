"""Finds this program's own files, its version, and the command that starts it.

The program runs from a checkout or from an installed wheel. A checkout has the folders `docs` and `templates`
beside the packages. A wheel has them in `webapp`: beside its packages are those of all other projects.
"""

import functools
import importlib.metadata
import os
import shlex
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The folder that contains the packages: the checkout, or the one with all installed packages."""
IS_CHECKOUT = (ROOT / "manage.py").is_file()


KEYLESS_VARIABLE = "TRAINYARD_WITHOUT_KEY"
"""Set for parts that sign nothing, and for their children. They make no secret key if there is none."""

WITHOUT_FILES_VARIABLE = "TRAINYARD_WITHOUT_FILES"
"""Set for commands without an installation that begin none: the settings make no folder and no key."""


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


def command_line(arguments: str, *, with_home: bool = True) -> str:
    """Return the terminal line that runs a command of this program, for messages.

    Args:
        arguments: the command and its options.
        with_home: begin with the home, if the command would not find it by itself. Readers who have not
            logged in do not see where it is.
    """
    home = _home_to_name() if with_home else None
    return f"{_start()} {arguments}" if home is None else f"TRAINYARD_HOME={home} {_start()} {arguments}"


def _home_to_name() -> str | None:
    """Return the home, quoted for a shell; None if the command finds it in the folder in which it starts.

    An installed program starts in any folder, so its home is always named.
    """
    home = Path(os.environ.get("TRAINYARD_HOME") or ".trainyard").resolve()
    return None if IS_CHECKOUT and home == ROOT / ".trainyard" else shlex.quote(str(home))


@functools.cache
def _start() -> str:
    if not IS_CHECKOUT:
        return "trainyard"
    is_usual = Path(sys.prefix).resolve() == (ROOT / ".venv").resolve()
    return f"{'.venv/bin/python' if is_usual else 'python'} manage.py"
