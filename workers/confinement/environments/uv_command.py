"""Finds uv or pip on this machine, and names the index to it."""

import ensurepip
import importlib.util
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from workers.confinement.environments.index import PackageIndex

INSTALLER_VARIABLE = "TRAINYARD_PACKAGE_INSTALLER"
"""`uv` or `pip`. Default: uv where it is found."""


class NoInstaller(Exception):
    """This machine has neither uv nor pip. The text is the reason."""


class Installer(NamedTuple):
    """The program that installs packages.

    Attributes:
        name: `uv` or `pip`.
        command: how it is started.
    """

    name: str
    command: tuple[str, ...]


def find(wanted: str = "") -> Installer:
    """Return uv if it is installed, else pip.

    Args:
        wanted: `uv` or `pip`, if the operator chose one.

    Raises:
        NoInstaller: there is none.
    """
    if wanted not in ("", "uv", "pip"):
        raise NoInstaller(f'{INSTALLER_VARIABLE}={wanted!r}: write "uv" or "pip"')
    beside = Path(sys.executable).parent / "uv"
    uv = str(beside) if beside.exists() else shutil.which("uv")
    if uv is not None and wanted != "pip":
        return Installer("uv", (uv,))
    if wanted == "uv":
        raise NoInstaller("uv is not installed on this worker")
    if importlib.util.find_spec("pip") is not None:
        return Installer("pip", (sys.executable, "-I", "-m", "pip"))
    bundled = sorted(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl"))
    if bundled:
        return Installer("pip", (sys.executable, "-I", f"{bundled[-1]}/pip"))
    raise NoInstaller("this worker has neither uv nor pip")


def variables_of_pip(index: PackageIndex, *, wheels_only: bool) -> dict[str, str]:
    """Return the variables for pip, which also hold for the packages that a build needs."""
    found = {
        # No other configuration: the sandbox may not be able to read it.
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_NO_INPUT": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_PROGRESS_BAR": "off",
        "PIP_ROOT_USER_ACTION": "ignore",
        "PIP_PREFER_BINARY": "1",
        "PIP_RETRIES": "2",
        "PIP_DEFAULT_TIMEOUT": index.timeout,
    }
    if index.urls:
        found["PIP_INDEX_URL"] = index.urls[0]
    else:
        found["PIP_NO_INDEX"] = "1"
    for name, values in (
        ("PIP_EXTRA_INDEX_URL", index.urls[1:]),
        ("PIP_FIND_LINKS", index.links),
        ("PIP_TRUSTED_HOST", index.trusted),
        ("PIP_ONLY_BINARY", (":all:",) if wheels_only else ()),
    ):
        if values:
            found[name] = " ".join(values)
    if index.certificates:
        found["PIP_CERT"] = index.certificates
    return found


def variables_of_uv(index: PackageIndex) -> dict[str, str]:
    """Return the variables for uv."""
    found = {
        "UV_NO_CONFIG": "1",
        "UV_NO_CACHE": "1",
        "UV_NO_PROGRESS": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_HTTP_TIMEOUT": index.timeout,
        "UV_LINK_MODE": "copy",
        # As pip does: the best version of all indexes.
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }
    if index.certificates:
        found["SSL_CERT_FILE"] = index.certificates
    if index.urls:
        found["UV_DEFAULT_INDEX"] = index.urls[0]
    if index.urls[1:]:
        found["UV_INDEX"] = " ".join(index.urls[1:])
    if index.links:
        found["UV_FIND_LINKS"] = ",".join(index.links)
    if index.trusted:
        found["UV_INSECURE_HOST"] = " ".join(index.trusted)
    return found


def options_of_uv(index: PackageIndex, *, wheels_only: bool) -> tuple[str, ...]:
    """Return the options of uv that no variable has."""
    return (*(() if index.urls else ("--no-index",)), *(("--only-binary", ":all:") if wheels_only else ()))
