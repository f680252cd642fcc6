"""The public address of the dashboard, and the hosts to whose names it answers."""

import os
import re
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from webapp.settings.env import flag, words

PATH_OF_PUBLIC_URL = re.compile(r"(/[A-Za-z0-9][A-Za-z0-9._-]*)*")
OWN_PLACES = frozenset(
    (
        *("account", "accounts", "admin", "api", "approvals", "audit", "code", "datasets"),
        *("delete", "deletions", "docs", "endpoints", "healthz", "help", "jobs", "login"),
        *("models", "p", "people", "projects", "queue", "readyz", "search", "settings"),
        *("livez", "metrics", "static", "storage", "styleguide", "tokens", "workers", "ws"),
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


def allowed_hosts(public: str) -> list[str]:
    """Return the allowed host names: loopback, the public address, `TRAINYARD_ALLOWED_HOSTS`."""
    hosts = words("TRAINYARD_ALLOWED_HOSTS")
    # The origin check of WebSockets uses the list too: with * it would let every site in.
    if "*" in hosts:
        raise ImproperlyConfigured(
            "TRAINYARD_ALLOWED_HOSTS=* would allow requests under any host name; list the hosts"
        )
    name = urlsplit(public).hostname
    return ["localhost", "127.0.0.1", "[::1]", *([name] if name else []), *hosts]
