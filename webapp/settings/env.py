"""Reads settings from environment variables; an invalid value stops the start with a message."""

import ipaddress
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from django.core.exceptions import ImproperlyConfigured

from jobs import known_variables, private_files
from jobs.logs.masking import mask
from jobs.spec.data.addresses import BadAddress, canonical_host


def settle_variables() -> None:
    """Refuse unknown `TRAINYARD_…` variables, and remove empty ones."""
    try:
        known_variables.settle()
    except known_variables.UnknownVariable as error:
        raise ImproperlyConfigured(str(error)) from error


def require_private(check: Callable[[Path], object], path: Path, name: str) -> Path:
    """Apply a check from `jobs.private_files`; a refusal stops the start with its message.

    Args:
        check: the check.
        path: the file or folder.
        name: the variable that changes it.
    """
    try:
        check(path)
    except private_files.NotPrivate as error:
        raise ImproperlyConfigured(f"{name}: {error}") from error
    except OSError as error:
        raise ImproperlyConfigured(f"{name}: {path} cannot be used: {error.strerror or error}") from error
    return path


def flag(name: str, *, default: bool = False) -> bool:
    """Return a boolean: 0, 1, true or false; `default` if the variable is absent."""
    text = os.environ.get(name, "").lower()
    if text == "":
        return default
    if text in ("0", "false"):
        return False
    if text in ("1", "true"):
        return True
    raise ImproperlyConfigured(f"{name}={text!r}: give 1 or 0")


def share(name: str, default: float) -> float:
    """Return a number from 0 to 1."""
    text = os.environ.get(name) or str(default)
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ImproperlyConfigured(f"{name}={text!r}: give a share from 0 to 1, such as 0.01")
    return number


def words(name: str) -> list[str]:
    """Return a comma-separated list."""
    return [word.strip() for word in os.environ.get(name, "").split(",") if word.strip()]


def parts_of(name: str, url: str) -> SplitResult:
    """Return the parts of an address, whose port can be read."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}={mask(url)!r} is no address: {error}") from error
    return parts


def whole_number(name: str, default: int, *, of: str = "", least: int = 1) -> int:
    """Return a whole number, at least `least`. The error message names the unit `of`."""
    text = os.environ.get(name) or str(default)
    if not text.isdecimal() or int(text) < least:
        unit = f" of {of}" if of else ""
        raise ImproperlyConfigured(f"{name}={text!r}: give a number{unit}, such as {default}")
    return int(text)


def networks(name: str, default: Sequence[str]) -> list[str]:
    """Return IP addresses and networks from a comma-separated list; `none` is an empty list."""
    hosts = words(name) or list(default)
    if hosts == ["none"]:
        return []
    for host in hosts:
        try:
            ipaddress.ip_network(host)
        except ValueError as error:
            raise ImproperlyConfigured(
                f"{name}: {host!r} is no address and no network, such as 10.0.0.0/24 ({error})"
            ) from error
    return hosts


def hosts_and_ports(name: str) -> frozenset[tuple[str, int]]:
    """Return `host:port` pairs from a comma-separated list; patterns are refused."""
    allowed = set[tuple[str, int]]()
    for address in words(name):
        host, _, port = address.rpartition(":")
        try:
            bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
            if not port.isdecimal() or not 0 < int(port) < 65536 or (":" in bare and bare == host):
                raise BadAddress("the port is missing or not valid")
            allowed.add((canonical_host(bare), int(port)))
        except BadAddress as error:
            raise ImproperlyConfigured(
                f"{name}: {address!r} is no host with a port, such as data.internal:443 or [fd00::1]:9000 "
                f"({error})"
            ) from error
    return frozenset(allowed)
