"""Chooses the environment for processes that the web process starts for a single request."""

import os

# All others are left out: the environment of the web process may hold the database's password.
INHERITED_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "VIRTUAL_ENV")


def inherited_environment() -> dict[str, str]:
    """Return this process's variables that such a process gets."""
    return {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}
