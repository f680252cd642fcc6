"""Who may ask for predictions: nobody needs a token on loopback, everybody elsewhere."""

import hashlib
import time
from collections import OrderedDict
from typing import NamedTuple, Protocol

from workers.serving.asgi import Request
from workers.serving.errors import Forbidden, Unauthenticated, Unavailable

_FRESH_SECONDS = 60.0
_MOST_REMEMBERED = 10_000


class Scopes(Protocol):
    """Knows tokens."""

    async def scopes_of(self, token: str) -> frozenset[str] | None:
        """Return a token's scopes; None if nobody knows it."""


class _Known(NamedTuple):
    scopes: frozenset[str] | None
    asked: float


class TokenGate:
    """Asks the dashboard about each token, remembers its answers by the token's digest.

    An answer holds for a minute; while the dashboard is away the last one holds.
    """

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    async def check(self, request: Request) -> None:
        """Let the request pass.

        Raises:
            Unauthenticated: no Bearer token, or one that nobody knows.
            Forbidden: its scopes lack `serve`.
            Unavailable: nobody can say now, and it was never seen before.
        """
        scheme, _, token = (request.header(b"authorization") or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Unauthenticated("Send a token with scope serve: Authorization: Bearer …")
        scopes = await self._scopes_of(token.strip())
        if scopes is None:
            raise Unauthenticated("The token is not valid")
        if "serve" not in scopes:
            raise Forbidden("The token lacks the scope serve")

    async def _scopes_of(self, token: str) -> frozenset[str] | None:
        key = hashlib.sha256(token.encode()).digest()
        known = self._known.get(key)
        if known is not None and time.monotonic() - known.asked < _FRESH_SECONDS:
            return known.scopes
        try:
            scopes = await self._scopes.scopes_of(token)
        except OSError:
            if known is None:
                raise Unavailable("The token cannot be checked now", retry_after=5) from None
            return known.scopes
        self._known[key] = _Known(scopes, time.monotonic())
        self._known.move_to_end(key)
        while len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)
        return scopes
