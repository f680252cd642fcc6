"""Finds the hosts that have the files of uv's built-in package index. Another host has its pages."""

import functools
import logging
import tomllib
from urllib.parse import urlsplit

from workers.confinement.environments import default_index, uv_command
from workers.confinement.environments.index import PORTS, PackageIndex

log = logging.getLogger(__name__)

PROBE = "packaging"
"""The package whose files are asked for: this program needs it, so the index has it."""
type _Hosts = frozenset[tuple[str, int]]


def find_file_hosts(index: PackageIndex) -> _Hosts:
    """Return the hosts and ports that a build must reach beside the addresses themselves.

    They are asked for outside the sandbox. Nothing is executed: only wheels are looked at.
    """
    url = next((url for url in index.urls if default_index.is_default(url)), None)
    if url is None:
        return frozenset()
    try:
        return _file_hosts(index._replace(urls=(url,), links=()))
    except default_index.Unknown as error:
        # The installation names the index that does not answer.
        log.warning("the hosts of the files of the package index are not known: %s", error)
        return frozenset()


@functools.lru_cache(maxsize=4)
def _file_hosts(index: PackageIndex) -> _Hosts:
    variables = uv_command.variables(index)
    if index.upstream:
        variables["HTTPS_PROXY"] = index.upstream
    options = ("--format", "pylock.toml", "--no-deps", "--only-binary", ":all:")
    try:
        lock = tomllib.loads(default_index.compile_requirements(PROBE, variables, *options))
        wheels = [wheel for package in lock["packages"] for wheel in package.get("wheels", ())]
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise default_index.Unknown(f"uv wrote a lock file of another form: {error}") from error
    urls = (urlsplit(wheel.get("url", "")) for wheel in wheels)
    return frozenset((url.hostname, url.port or PORTS["https"]) for url in urls if url.hostname)
