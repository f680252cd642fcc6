"""Asks uv for the address of its built-in package index, which is not in this program's source."""

import functools
import os
import subprocess
import sys
from collections.abc import Mapping

from uv import find_uv_bin

TIMEOUT = 60.0
_VARIABLES = "UV_"


class Unknown(Exception):
    """uv or the index gave no answer. The text is the reason."""


@functools.cache
def address() -> str:
    """Return the index address that uv uses without a configuration. It needs no network.

    Raises:
        Unknown: uv names none.
    """
    option, _, url = compile_requirements("", {}, "--emit-index-url", "--offline").strip().partition(" ")
    if option != "--index-url" or not url:
        raise Unknown("uv names no package index")
    return url


def is_default(url: str) -> bool:
    """Return whether a URL is the built-in index."""
    try:
        return url.rstrip("/") == address().rstrip("/")
    except Unknown:
        return False


def compile_requirements(requirements: str, variables: Mapping[str, str], *options: str) -> str:
    """Return the output from `uv pip compile`, without this machine's configuration.

    Args:
        requirements: one in each line.
        variables: environment variables for uv.
        options: for the command.

    Raises:
        Unknown: it failed.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_VARIABLES)}
    try:
        done = subprocess.run(  # noqa: S603  the program of a dependency
            [
                *(find_uv_bin(), "pip", "compile", "-", "--no-config", "--no-cache", "--quiet"),
                *("--no-header", "--python", sys.executable, *options),
            ],
            input=requirements, env=environment | dict(variables), capture_output=True, text=True,
            timeout=TIMEOUT, check=True,
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines() or ["uv failed"]
        raise Unknown(lines[0].removeprefix("error: ")) from error
    except (OSError, subprocess.SubprocessError) as error:
        raise Unknown(str(error)) from error
    return done.stdout
