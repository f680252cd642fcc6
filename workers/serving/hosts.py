"""Checks the Host header in requests to a loopback address.

A page from another site can have its own name resolve to this machine, and would then reach a server that
asks for no token. The browser sends that site's name as the host.
"""

import re
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from workers.model_process.errors import BadRequest
from workers.serving.asgi import Request

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\[\]:]+)(?::\d{1,5})?")


def allowed_hosts(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return further host names: from `TRAINYARD_PUBLIC_URL`, and `TRAINYARD_ALLOWED_HOSTS`.

    Raises:
        ValueError: `*` is among them.
    """
    words = (word.strip().lower() for word in environment.get("TRAINYARD_ALLOWED_HOSTS", "").split(","))
    hosts = [word for word in words if word]
    if "*" in hosts:
        raise ValueError("TRAINYARD_ALLOWED_HOSTS=* would allow requests under any host name; list the hosts")
    public = urlsplit(environment.get("TRAINYARD_PUBLIC_URL", "")).hostname
    return (*hosts, public) if public else tuple(hosts)


def check_host(request: Request, allowed: Collection[str]) -> None:
    """Check a request's host name; `.example.com` allows all names below it.

    HTTP/1.0 has none, and no browser sends it.

    Raises:
        BadRequest: it is missing, malformed or not allowed.
    """
    header = request.header(b"host")
    if header is None and request.http == "1.0":
        return
    header = header or ""
    match = _HOST.fullmatch(header)
    name = match[1].strip("[]").lower().removesuffix(".") if match else ""
    is_allowed = any(
        name == host or (host.startswith(".") and (name.endswith(host) or name == host[1:]))
        for host in allowed
    )
    if not name or not is_allowed:
        raise BadRequest(f"The host {header[:200]!r} is not allowed: add its name to TRAINYARD_ALLOWED_HOSTS")
