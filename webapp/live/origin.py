"""Checks that this installation's own page opens a connection, by scheme, host and port.

A browser sends the cookie of the session with connections that pages of other ports, or of http instead of
https, open on the same host.
"""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

DEFAULT_PORTS = {"http": 80, "https": 443}


def is_own(origin: str, *, secure: bool, host: str) -> bool:
    """Return whether `origin` is the address at which the client reached this installation.

    Args:
        origin: the Origin header.
        secure: whether the client used https or wss.
        host: the Host header.
    """
    sent = _parts(origin)
    if sent is None:
        return False
    trusted = [*settings.CSRF_TRUSTED_ORIGINS]
    if validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        trusted.append(f"{'https' if secure else 'http'}://{host}")
    return sent in {_parts(address) for address in trusted}


def _parts(origin: str) -> tuple[str, str, int] | None:
    try:
        parts = urlsplit(origin)
        port = parts.port or DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return None
    return (parts.scheme, parts.hostname, port) if parts.hostname and port else None


class OwnOrigin:
    """Refuses WebSocket handshakes from pages outside this installation (an ASGI application)."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the connection on if its Origin header is right."""
        headers = {name.lower(): value.decode("latin-1") for name, value in scope.get("headers", [])}
        secure = scope.get("scheme") == "wss"
        origin, host = headers.get(b"origin", ""), headers.get(b"host", "")
        if is_own(origin, secure=secure, host=host):
            await self._application(scope, receive, send)
            return
        await receive()
        # Before it is accepted: the server answers the handshake with 403.
        await send({"type": "websocket.close"})
