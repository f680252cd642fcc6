"""Finds uv, which installs packages, and configures it for a package index."""

import os
from pathlib import Path

from uv import find_uv_bin

from workers.confinement.environments.index import PackageIndex

NAME = "uv"
DOWNLOADS, PROCESSES = 16, 8
"""The most that run at the same time."""


class NoInstaller(Exception):
    """This machine has no uv. The text is the reason."""


def find_uv() -> str:
    """Return the path to the uv that is installed with this program.

    Raises:
        NoInstaller: it is missing.
    """
    try:
        return find_uv_bin()
    except FileNotFoundError as error:
        raise NoInstaller(
            "the program uv is missing on this worker; it is a dependency of Trainyard"
        ) from error


def variables(index: PackageIndex) -> dict[str, str]:
    """Return the environment variables that configure uv; command lines could be read by other users."""
    environment = {
        # No other configuration: the sandbox may not be able to read it.
        "UV_NO_CONFIG": "1",
        "UV_NO_CACHE": "1",
        "UV_NO_PROGRESS": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_LINK_MODE": "copy",
        "UV_HTTP_RETRIES": "2",
        "UV_HTTP_TIMEOUT": str(index.timeout),
        "UV_SYSTEM_CERTS": "1",
        # By default it opens more connections than the proxy accepts, and starts a process for each core.
        "UV_CONCURRENT_DOWNLOADS": str(DOWNLOADS),
        "UV_CONCURRENT_BUILDS": str(min(PROCESSES, os.cpu_count() or 1)),
        "UV_CONCURRENT_INSTALLS": str(min(PROCESSES, os.cpu_count() or 1)),
    }
    if index.certificates:
        name = "SSL_CERT_DIR" if Path(index.certificates).is_dir() else "SSL_CERT_FILE"
        environment[name] = index.certificates
    if index.urls:
        environment["UV_DEFAULT_INDEX"] = index.urls[0]
    if index.urls[1:]:
        environment["UV_INDEX"] = " ".join(index.urls[1:])
    if len(index.urls) + len(index.links) > 1:
        # The best version of all of them; of a single index, uv reports why it refuses the access.
        environment["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    if index.links:
        environment["UV_FIND_LINKS"] = ",".join(map(_link, index.links))
    if index.trusted:
        environment["UV_INSECURE_HOST"] = " ".join(index.trusted)
    return environment


def options(index: PackageIndex, *, wheels_only: bool) -> tuple[str, ...]:
    """Return the options that have no environment variable."""
    return (*(() if index.urls else ("--no-index",)), *(("--only-binary", ":all:") if wheels_only else ()))


def _link(link: str) -> str:
    """Return a link without commas, which separate links."""
    if "," not in link:
        return link
    return link.replace(",", "%2C") if "://" in link else Path(link).as_uri()
