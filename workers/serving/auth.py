"""Authenticates callers by token. On a loopback address no token is needed."""

import hashlib
import time
from collections import OrderedDict
from typing import NamedTuple, Protocol

from workers.serving.asgi import Request
from workers.serving.errors import Forbidden, Unauthenticated, Unavailable

# A revoked token is accepted for this long at most.
_CACHE_SECONDS = 60.0
# Callers may send any number of invalid tokens.
_MAX_CACHED = 10_000


class ScopeLookup(Protocol):
    """Looks up the scopes of tokens."""

    async def scopes_of(self, token: str) -> frozenset[str] | None:
        """Return the scopes of a token; None if it is unknown. Raises OSError if there is no answer."""


class _CachedScopes(NamedTuple):
    scopes: frozenset[str] | None
    checked_at: float


class TokenAuthenticator:
    """Checks tokens at the dashboard and caches the answers by the token's digest.

    An answer is valid for a minute; while the dashboard is unavailable, the last one is used.
    """

    def __init__(self, lookup: ScopeLookup) -> None:
        self._lookup = lookup
        self._cache: OrderedDict[bytes, _CachedScopes] = OrderedDict()

    async def check(self, request: Request) -> None:
        """Check the token of a request.

        Raises:
            Unauthenticated: there is no Bearer token, or it is unknown.
            Forbidden: its scopes lack `serve`.
            Unavailable: the dashboard cannot be reached, and the token is not cached.
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
        # The digest, so that the tokens of callers are not kept in memory.
        key = hashlib.sha256(token.encode()).digest()
        cached = self._cache.get(key)
        if cached is not None and time.monotonic() - cached.checked_at < _CACHE_SECONDS:
            return cached.scopes
        try:
            scopes = await self._lookup.scopes_of(token)
        except OSError:
            # An outage of the dashboard must not interrupt serving for known callers.
            if cached is None:
                raise Unavailable("The token cannot be checked now", retry_after=5) from None
            return cached.scopes
        self._cache[key] = _CachedScopes(scopes, time.monotonic())
        # Replacing an entry does not move it.
        self._cache.move_to_end(key)
        while len(self._cache) > _MAX_CACHED:
            self._cache.popitem(last=False)
        return scopes
