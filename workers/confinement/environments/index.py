"""Reads where packages come from: the operator's variables, else the configuration of pip on this machine."""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, TypedDict
from urllib.parse import unquote, urlsplit

from jobs.spec.checks.packages import BadRequirement, parse_requirement

INDEX_VARIABLE = "TRAINYARD_PACKAGE_INDEX"
"""Addresses of package indexes, the main one first. Default: those of pip's configuration."""
FOLDER_VARIABLE = "TRAINYARD_PACKAGE_FOLDER"
"""A folder of wheels. With it, no index is used."""
HOSTS_VARIABLE = "TRAINYARD_PACKAGE_HOSTS"
"""Further hosts from which an index has its files, as `host` or `host:port`."""
PORTS = {"https": 443, "http": 80}
TIMEOUT = 60.0
_OPTIONS = (
    "index-url", "extra-index-url", "find-links", "no-index", "trusted-host", "cert", "proxy", "timeout",
    "default-timeout", "constraint",
)  # fmt: skip
_SOURCES = ("global", "install", ":env:")
"""The sections of pip's configuration that hold for an installation; a later one replaces an earlier one."""
_FACTS = """
import json, sys
from pip._internal.configuration import Configuration
from pip._internal.models.index import PyPI
configuration = Configuration(isolated=False)
configuration.load()
options = {}
for name in json.loads(sys.argv[1]):
    try:
        section, _, option = name.partition(".")
        options[option] = configuration.get_value(name)
    except Exception:
        pass
print(json.dumps({"options": options, "index": PyPI.simple_url, "files": PyPI.file_storage_domain}))
"""


class PipFacts(TypedDict):
    """The options of pip, its default index, and the host of the files of that."""

    options: dict[str, str]
    index: str
    files: str


class NoIndex(Exception):
    """The operator's settings name no usable index. The text is the reason."""


class PackageIndex(NamedTuple):
    """Where packages come from.

    Attributes:
        urls: addresses of indexes, the main one first.
        links: folders and addresses with files of packages.
        hosts: the hosts and ports that a build may reach.
        readable: the folders and files of this machine that it needs.
        trusted: hosts whose certificate is not checked, by the operator's choice.
        certificates: a file of certificates; None for those of the system.
        upstream: the address of a proxy between this machine and the index; None without one.
        timeout: seconds until a silent index is given up.
        constraints: further requirements of the operator's configuration.
    """

    urls: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    hosts: frozenset[tuple[str, int]] = frozenset()
    readable: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()
    certificates: str | None = None
    upstream: str | None = None
    timeout: str = "15"
    constraints: tuple[str, ...] = ()

    @property
    def has_password(self) -> bool:
        """Whether an address has a password, which all code in a build could read."""
        return any(urlsplit(each).password or urlsplit(each).username for each in (*self.urls, *self.links))

    @property
    def passwords(self) -> set[str]:
        """The passwords and names in the addresses, to be masked."""
        parts = [urlsplit(each) for each in (*self.urls, *self.links)]
        return {text for part in parts for text in (part.password, part.username) if text}

    def described(self) -> str:
        """Return where packages come from, for people, without passwords."""
        if not self.urls:
            return "the folder " + ", ".join(self.links)
        return ", ".join(_without_password(each) for each in self.urls)


def read(environment: Mapping[str, str] = os.environ) -> PackageIndex:
    """Return where packages come from.

    Raises:
        NoIndex: the settings name none, or cannot be read.
    """
    if folder := environment.get(FOLDER_VARIABLE):
        if not Path(folder).is_dir():
            raise NoIndex(f"{FOLDER_VARIABLE}={folder!r} is no folder on this worker")
        return PackageIndex(links=(folder,), readable=(folder,))
    facts = _pip_facts(tuple(sorted(environment.items())))
    named = tuple(environment.get(INDEX_VARIABLE, "").split())
    if not named and facts is None:
        raise NoIndex(f"this worker has no pip whose configuration names an index: set {INDEX_VARIABLE}")
    options = {} if facts is None else facts["options"]
    further = _hosts(environment.get(HOSTS_VARIABLE, "").split())
    urls = named
    links: tuple[str, ...] = ()
    if not named:
        assert facts is not None  # noqa: S101  checked above
        main = options.get("index-url") or facts["index"]
        without = options.get("no-index", "").lower() in ("1", "true", "yes", "on")
        urls = () if without else (main, *options.get("extra-index-url", "").split())
        links = tuple(options.get("find-links", "").split())
        if main == facts["index"]:
            # The files of the default index are at another host.
            further = further | {(facts["files"], PORTS["https"])}
    return _index(urls, links, further, options, environment)


def _index(
    urls: tuple[str, ...],
    links: tuple[str, ...],
    further: frozenset[tuple[str, int]],
    options: Mapping[str, str],
    environment: Mapping[str, str],
) -> PackageIndex:
    certificates = options.get("cert") or environment.get("SSL_CERT_FILE")
    local = [path for each in (*urls, *links) if (path := _local(each)) is not None]
    reached = frozenset(host for each in (*urls, *links) if (host := _host(each)) is not None)
    readable = [*local, *([certificates] if certificates else [])]
    return PackageIndex(
        urls=urls,
        links=links,
        hosts=reached | further if reached else frozenset(),
        readable=tuple(path for path in dict.fromkeys(readable) if Path(path).exists()),
        trusted=tuple(options.get("trusted-host", "").split()),
        certificates=certificates,
        upstream=options.get("proxy") or environment.get("HTTPS_PROXY") or environment.get("https_proxy"),
        timeout=options.get("timeout") or options.get("default-timeout") or "15",
        constraints=tuple(_constraints(options.get("constraint", "").split())),
    )


@functools.lru_cache(maxsize=4)
def _pip_facts(environment: tuple[tuple[str, str], ...]) -> PipFacts | None:
    """Return pip's options of this machine and its default index; None without pip."""
    names = [f"{source}.{option}" for source in _SOURCES for option in _OPTIONS]
    command = [sys.executable, "-P", "-c", _FACTS, json.dumps(names)]
    try:
        done = subprocess.run(  # noqa: S603  the program is above
            command, env=dict(environment), capture_output=True, timeout=TIMEOUT, check=True
        )
        facts: PipFacts = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return facts


def _constraints(files: Iterable[str]) -> Iterable[str]:
    for file in files:
        try:
            lines = Path(_local(file) or file).read_text().splitlines()
        except OSError:
            continue  # pip would refuse to work; without the file, the index decides
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
    """Return the folder of an index on this machine's disk."""
    parts = urlsplit(address)
    if parts.scheme == "file":
        folder = Path(unquote(parts.path))
        # The pages of an index refer to files in a folder beside it.
        return str(folder.parent if len(folder.parts) > 3 else folder)
    return address if parts.scheme == "" and Path(address).is_absolute() else None


def _hosts(names: Iterable[str]) -> frozenset[tuple[str, int]]:
    found = set()
    for name in names:
        host, _, port = name.partition(":")
        if not host or (port and not port.isdecimal()):
            raise NoIndex(f'{HOSTS_VARIABLE}: {name!r} is no "host" or "host:port"')
        found.add((host.lower(), int(port or PORTS["https"])))
    return frozenset(found)


def _without_password(address: str) -> str:
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host).geturl()
