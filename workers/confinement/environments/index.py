"""Reads where packages come from: the operator's variables, else pip's configuration on this machine."""

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from jobs.spec.checks.packages import BadRequirement, parse_requirement
from workers.confinement.environments import default_index, pip_configuration

INDEX_VARIABLE = "TRAINYARD_PACKAGE_INDEX"
"""Addresses of package indexes, the main one first. Default: those of pip's configuration."""
FOLDER_VARIABLE = "TRAINYARD_PACKAGE_FOLDER"
"""A folder of wheels. With it, no index is used."""
HOSTS_VARIABLE = "TRAINYARD_PACKAGE_HOSTS"
"""Further hosts from which an index has its files, as `host` or `host:port`."""
PORTS = {"https": 443, "http": 80}
DEFAULT_TIMEOUT = 15


class NoIndex(Exception):
    """The operator's settings name no usable index. The text is the reason."""


class PackageIndex(NamedTuple):
    """Where packages come from.

    Attributes:
        urls: index addresses, the main one first.
        links: folders and addresses with package files.
        hosts: the hosts and ports that a build may reach.
        readable: files and folders on this machine that it needs.
        trusted: hosts whose certificate is not checked, by the operator's choice.
        certificates: a file or folder with certificates; None for the system's.
        upstream: a proxy's address between this machine and the index; None without one.
        timeout: seconds until a silent index is given up, a whole number.
        constraints: further requirements from the operator's configuration.
    """

    urls: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    hosts: frozenset[tuple[str, int]] = frozenset()
    readable: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()
    certificates: str | None = None
    upstream: str | None = None
    timeout: int = DEFAULT_TIMEOUT
    constraints: tuple[str, ...] = ()

    @property
    def has_password(self) -> bool:
        """Whether an address has a password, which all code in a build could read."""
        return any(part.password or part.username for part in self._parts)

    @property
    def passwords(self) -> set[str]:
        """The passwords and names in the addresses, also as uv reads them, to be masked."""
        texts = {text for part in self._parts for text in (part.password, part.username) if text}
        return texts | {unquote(text) for text in texts}

    @property
    def _parts(self) -> list[SplitResult]:
        return [urlsplit(address) for address in (*self.urls, *self.links)]

    def described(self) -> str:
        """Return where packages come from, for people, without passwords."""
        if not self.urls:
            return "the folder " + ", ".join(_without_password(link) for link in self.links)
        return ", ".join(_without_password(url) for url in self.urls)


def read(environment: Mapping[str, str] = os.environ) -> PackageIndex:
    """Return where packages come from.

    Raises:
        NoIndex: the settings name none, or cannot be read.
    """
    if folder := environment.get(FOLDER_VARIABLE):
        if not Path(folder).is_dir():
            raise NoIndex(f"{FOLDER_VARIABLE}={folder!r} is no folder on this worker")
        return PackageIndex(links=(folder,), readable=(folder,))
    try:
        options = pip_configuration.read(environment)
    except pip_configuration.BadConfiguration as error:
        raise NoIndex(str(error)) from error
    further = _hosts(environment.get(HOSTS_VARIABLE, "").split())
    if urls := tuple(environment.get(INDEX_VARIABLE, "").split()):
        return _index(urls, (), further, options, environment)
    links = tuple(options.get("find-links", "").split())
    if options.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        return _index((), links, further, options, environment)
    main = options.get("index-url") or _default_url()
    return _index((main, *options.get("extra-index-url", "").split()), links, further, options, environment)


def _default_url() -> str:
    try:
        return default_index.address()
    except default_index.Unknown as error:
        raise NoIndex(f"no configuration names a package index ({error}): set {INDEX_VARIABLE}") from error


def _index(
    urls: tuple[str, ...],
    links: tuple[str, ...],
    further: frozenset[tuple[str, int]],
    options: Mapping[str, str],
    environment: Mapping[str, str],
) -> PackageIndex:
    certificates = options.get("cert") or environment.get("SSL_CERT_FILE")
    local = [path for address in (*urls, *links) if (path := _local(address)) is not None]
    reached = frozenset(host for address in (*urls, *links) if (host := _host(address)) is not None)
    if certificates and reached and not Path(certificates).exists():
        raise NoIndex(f"the file of certificates {certificates!r} is missing on this worker")
    readable = [*local, *([certificates] if certificates else [])]
    return PackageIndex(
        urls=urls,
        links=links,
        hosts=reached | further if reached else frozenset(),
        readable=tuple(path for path in dict.fromkeys(readable) if Path(path).exists()),
        trusted=tuple(options.get("trusted-host", "").split()),
        certificates=certificates,
        upstream=options.get("proxy") or environment.get("HTTPS_PROXY") or environment.get("https_proxy"),
        timeout=_seconds(options.get("timeout") or options.get("default-timeout") or str(DEFAULT_TIMEOUT)),
        constraints=tuple(_constraints(options.get("constraint", "").split())),
    )


def _seconds(text: str) -> int:
    """Return pip's timeout in whole seconds, which uv needs."""
    try:
        return max(1, math.ceil(float(text)))
    except (ValueError, OverflowError):
        raise NoIndex(f"the timeout {text!r} of pip's configuration is no number of seconds") from None


def _constraints(files: Iterable[str]) -> Iterable[str]:
    for file in files:
        try:
            lines = Path(_local(file) or file).read_text().splitlines()
        except OSError:
            continue  # without the file, the index decides
        for line in lines:
            try:
                yield str(parse_requirement(line.partition("#")[0]))
            except BadRequirement:
                continue


def _host(address: str) -> tuple[str, int] | None:
    parts = urlsplit(address)
    if parts.scheme not in PORTS or not parts.hostname:
        return None
    return parts.hostname, parts.port or PORTS[parts.scheme]


def _local(address: str) -> str | None:
    """Return the folder in which an index on this machine's disk lies."""
    parts = urlsplit(address)
    if parts.scheme == "file":
        folder = Path(unquote(parts.path))
        # The pages of an index refer to files in a folder beside it.
        return str(folder.parent if len(folder.parts) > 3 else folder)
    return address if parts.scheme == "" and Path(address).is_absolute() else None


def _hosts(names: Iterable[str]) -> frozenset[tuple[str, int]]:
    hosts = set()
    for name in names:
        host, _, port = name.partition(":")
        if not host or (port and not port.isdecimal()):
            raise NoIndex(f'{HOSTS_VARIABLE}: {name!r} is no "host" or "host:port"')
        hosts.add((host.lower(), int(port or PORTS["https"])))
    return frozenset(hosts)


def _without_password(address: str) -> str:
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host).geturl()
