"""Parses the addresses from which data may be fetched."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, unquote, urlsplit

Scheme = Literal["https", "http", "s3", "gs", "file"]
MAX_LENGTH = 4000
DEFAULT_PORTS = {"https": 443, "http": 80}
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,221}[A-Za-z0-9]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_KNOWN = "https://…, s3://bucket/key, gs://bucket/key, or the absolute path of a file"


class BadAddress(ValueError):
    """The text is no data address; the message has the reason."""


@dataclass(frozen=True)
class Address:
    """A parsed address.

    Attributes:
        scheme: how it is read.
        host: the host in lower case, or the bucket; empty for a file.
        port: the host's port; 0 without a host.
        path: a URL's path and query, the key in a bucket, or a file's path.
        shown: the address without its query, which may contain a signature.
        name: the last part of its path, as the file's name.
    """

    scheme: Scheme
    host: str
    port: int
    path: str
    shown: str
    name: str

    @property
    def url(self) -> str:
        """Return the whole address."""
        match self.scheme:
            case "file":
                return f"file://{quote(self.path)}"
            case "https" | "http":
                return f"{self.scheme}://{host_and_port(self.host, self.port, self.scheme)}{self.path}"
        return f"{self.scheme}://{self.host}/{self.path}"


def host_and_port(host: str, port: int, scheme: str = "") -> str:
    """Return `host:port`, without a scheme's default port, and an IPv6 address in brackets."""
    name = f"[{host}]" if ":" in host else host
    return name if port == DEFAULT_PORTS.get(scheme) else f"{name}:{port}"


def parse(text: str) -> Address:
    """Return the address in a text.

    Raises:
        BadAddress: it is none, or it contains a user name or a password.
    """
    if not text:
        raise BadAddress(f"give an address: {_KNOWN}")
    if len(text) > MAX_LENGTH:
        raise BadAddress(f"an address has at most {MAX_LENGTH:,} characters; this one has {len(text):,}")
    if _CONTROL.search(text):
        raise BadAddress("an address has no control characters and no line breaks")
    if text.startswith("/"):
        return _file(text)
    scheme, separator, rest = text.partition("://")
    match scheme.lower() if separator else "":
        case "https" | "http" as kind:
            return _web(kind, text)
        case "s3" | "gs" as kind:
            return _object(kind, rest)
        case "file":
            return _file_url(rest)
    # Without the rest, in which a secret may be.
    raise BadAddress(f"an address is {_KNOWN}")


def canonical_host(host: str) -> str:
    """Return a host name in lower case and ASCII, or an IP address in its usual form.

    Raises:
        BadAddress: it is neither.
    """
    if "%" in host:  # the zone of a link-local address
        raise BadAddress("the host of the address is not a valid name")
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    if host.isascii():
        canonical = host.lower()
    else:
        try:
            canonical = host.encode("idna").decode().lower()
        except UnicodeError as error:
            raise BadAddress("the host of the address is not a valid name") from error
    if not re.fullmatch(r"[a-z0-9_]([a-z0-9._-]{0,251}[a-z0-9])?", canonical):
        raise BadAddress("the host of the address is not a valid name")
    return canonical


def _web(scheme: Literal["https", "http"], text: str) -> Address:
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise BadAddress("the host or the port of the address is not valid") from error
    if "@" in parts.netloc:
        raise BadAddress(
            "an address has no user name and no password: save them as a credential of the project"
        )
    if not host or port == 0:
        raise BadAddress("the address has no host" if not host else "the port of the address is not valid")
    if " " in text:
        raise BadAddress("write spaces in an address as %20")
    host = canonical_host(host)
    port = port or DEFAULT_PORTS[scheme]
    # Characters that are quoted already stay as they are.
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~[]-._")
    query = quote(parts.query, safe="/%:@!$&'()*+,;=~?[]-._")
    place = f"{scheme}://{host_and_port(host, port, scheme)}{path}"
    return Address(
        scheme=scheme,
        host=host,
        port=port,
        path=f"{path}?{query}" if query else path,
        shown=f"{place}?…" if query else place,
        name=_file_name(unquote(parts.path)),
    )


def _object(scheme: Literal["s3", "gs"], rest: str) -> Address:
    bucket, _, key = rest.partition("/")
    if not _BUCKET.fullmatch(bucket):
        raise BadAddress(f"{scheme}://bucket/key: the bucket has 3 or more letters, digits, dots and hyphens")
    if not key or key.endswith("/"):
        raise BadAddress(f"{scheme}://bucket/key: the key names one object, not a folder")
    return Address(scheme, bucket, 0, key, f"{scheme}://{bucket}/{key}", _file_name(key))


def _file_url(rest: str) -> Address:
    host, _, path = rest.partition("/")
    if host not in ("", "localhost"):
        raise BadAddress("the address of a file has no host: write file:///folder/name.csv")
    path = unquote(f"/{path}")
    if _CONTROL.search(path):
        raise BadAddress("an address has no control characters and no line breaks")
    return _file(path)


def _file(path: str) -> Address:
    parts = path.split("/")[1:]
    if any(part in ("", ".", "..") for part in parts):
        raise BadAddress("the path of a file has no empty parts, and neither . nor ..")
    return Address("file", "", 0, path, path, _file_name(path))


def _file_name(path: str) -> str:
    # A name is shown and stored; a quoted path may contain anything.
    return _CONTROL.sub("", path.rsplit("/", 1)[-1])[-200:]
