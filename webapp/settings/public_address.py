"""The public address of the dashboard, and the hosts to whose names it answers."""

import os
import re
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from jobs.logs.masking import mask
from webapp.settings.env import flag, words

PATH_OF_PUBLIC_URL = re.compile(r"(/[A-Za-z0-9][A-Za-z0-9._-]*)*")
HOST = re.compile(r"\.?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\]")
OWN_PLACES = frozenset(
    (
        *("account", "accounts", "admin", "api", "approvals", "audit", "code", "compare"),
        *("datasets", "delete", "deletions", "docs", "endpoints", "healthz", "help", "jobs"),
        *("livez", "login", "mesh", "metrics", "models", "needs", "p", "people", "projects"),
        *("queue", "readyz", "search", "settings", "static", "storage", "styleguide", "tokens"),
        *("workers", "ws"),
    )
)
"""The first parts of the dashboard's own paths."""


def public_url() -> str:
    """Return the public address (`https://host[:port][/path]`); empty on a local machine."""
    url = os.environ.get("TRAINYARD_PUBLIC_URL", "").rstrip("/")
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or "@" in parts.netloc:
        raise ImproperlyConfigured(
            f"TRAINYARD_PUBLIC_URL={url!r}: give https://host, https://host:port or https://host/path"
        )
    if parts.query or parts.fragment or not PATH_OF_PUBLIC_URL.fullmatch(parts.path):
        raise ImproperlyConfigured(
            f"TRAINYARD_PUBLIC_URL={url!r}: its path may have letters, digits, '.', '_' and '-', such as "
            "https://host/trainyard, and nothing may follow it"
        )
    # A proxy may remove the path or pass it on: its first part must show which of the two it did.
    if (first := parts.path.strip("/").partition("/")[0]) in OWN_PLACES:
        raise ImproperlyConfigured(
            f"TRAINYARD_PUBLIC_URL={url!r}: the dashboard has pages of its own below /{first}; give another "
            "path, such as /trainyard"
        )
    return url


def demo(public: str) -> bool:
    """Return whether this is a demo, as `manage.py demo` sets it; a public installation cannot be one."""
    if (is_demo := flag("TRAINYARD_DEMO")) and public:
        raise ImproperlyConfigured(
            "TRAINYARD_DEMO=1 allows to kill runners on the pages; unset it, or TRAINYARD_PUBLIC_URL"
        )
    return is_demo


def check_serving_url() -> None:
    """Refuse an address of the prediction server that no request could be sent to."""
    url = os.environ.get("TRAINYARD_SERVING_URL", "")
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if url and not is_address:
        raise ImproperlyConfigured(
            f"TRAINYARD_SERVING_URL={mask(url)!r}: give http://host:port or https://host, also with a path"
        )


def allowed_hosts(public: str) -> list[str]:
    """Return the allowed host names: loopback, the public address, `TRAINYARD_ALLOWED_HOSTS`."""
    hosts = words("TRAINYARD_ALLOWED_HOSTS")
    # The origin check of WebSockets uses the list too: with * it would let every site in.
    if "*" in hosts:
        raise ImproperlyConfigured(
            "TRAINYARD_ALLOWED_HOSTS=* would allow requests under any host name; list the hosts"
        )
    if wrong := [host for host in hosts if HOST.fullmatch(host) is None]:
        raise ImproperlyConfigured(
            f"TRAINYARD_ALLOWED_HOSTS: {wrong[0]!r} is no name of a host; give names such as yard.example, "
            ".yard.example for all below it, 10.0.0.7 or [::1], without http:// and ports"
        )
    name = urlsplit(public).hostname
    return ["localhost", "127.0.0.1", "[::1]", *([name] if name else []), *hosts]
