"""Authenticates callers by token. On a loopback address no token is needed."""

import asyncio
import hashlib
import time
from collections import OrderedDict
from typing import NamedTuple, Protocol

from workers.model_process.errors import Forbidden, Unauthenticated, Unavailable
from workers.serving.access import Access
from workers.serving.asgi import Request

PREFIX = "ty_"
# A revoked token is accepted for this long at most.
_CACHE_SECONDS = 10.0
# An endpoint may have been created since the answer in the cache.
_RECHECK_SECONDS = 1.0
# Of known tokens, and as many of others. Callers may send any number of invalid ones.
_MAX_CACHED = 10_000
_MAX_TOKEN = 200
# Lookups share the connections of the poll for releases.
_MAX_LOOKUPS = 16


class AccessLookup(Protocol):
    """Looks up the access that tokens give."""

    async def access_of(self, token: str) -> Access | None:
        """Return a token's access; None if it is unknown. Raises OSError if there is no answer."""


class _Cached(NamedTuple):
    access: Access | None
    checked_at: float

    @property
    def age(self) -> float:
        return time.monotonic() - self.checked_at


class TokenAuthenticator:
    """Checks tokens at the dashboard and caches the answers by the token's digest.

    An answer is valid for ten seconds. While the dashboard is unavailable, the last one is used, until the
    token expires.
    """

    def __init__(self, lookup: AccessLookup) -> None:
        self._lookup = lookup
        self._known: OrderedDict[bytes, _Cached] = OrderedDict()
        # Apart, so that invalid tokens evict no known one, which works while the dashboard is unavailable.
        self._unknown: OrderedDict[bytes, _Cached] = OrderedDict()
        self._lookups = asyncio.Semaphore(_MAX_LOOKUPS)

    async def check(self, request: Request) -> Access:
        """Return the access that a request's token gives.

        Raises:
            Unauthenticated: there is no Bearer token, or it is unknown or expired.
            Forbidden: it is not for predictions.
            Unavailable: the dashboard cannot be reached, and the token is not cached.
        """
        return await self._access(_token_of(request), _CACHE_SECONDS)

    async def reaches(self, request: Request, model: str) -> bool:
        """Return whether a request's token reaches an endpoint. Raises like `check`."""
        token = _token_of(request)
        if _covers(await self._access(token, _CACHE_SECONDS), model):
            return True
        return _covers(await self._access(token, _RECHECK_SECONDS), model)

    def is_known(self, request: Request, model: str) -> bool:
        """Return whether a cached answer allows a request without a warning. Otherwise ask `check`."""
        try:
            cached = self._known.get(_digest(_token_of(request)))
        except Unauthenticated:
            return False
        if cached is None or cached.access is None or cached.age >= _CACHE_SECONDS:
            return False
        return _covers(cached.access, model) and not cached.access.is_expired and not cached.access.warning

    async def _access(self, token: str, valid_seconds: float) -> Access:
        key = _digest(token)
        cached = self._cached(key)
        if cached is None or cached.age >= valid_seconds:
            cached = await self._looked_up(key, token)
        access = cached.access
        if access is None or access.is_expired:
            raise Unauthenticated("The token is not valid")
        if access.endpoints is None:
            raise Forbidden("The token lacks the scope predict")
        return access

    def _cached(self, key: bytes) -> _Cached | None:
        return self._known.get(key) or self._unknown.get(key)

    async def _looked_up(self, key: bytes, token: str) -> _Cached:
        """Ask the dashboard, and store the answer."""
        try:
            async with self._lookups:
                answer = _Cached(await self._lookup.access_of(token), time.monotonic())
        except OSError:
            # An outage of the dashboard must not interrupt serving for known callers.
            if (last := self._cached(key)) is None:
                raise Unavailable("The token cannot be checked now", retry_after=5) from None
            return last
        self._known.pop(key, None)
        self._unknown.pop(key, None)
        answers = self._unknown if answer.access is None else self._known
        answers[key] = answer
        while len(answers) > _MAX_CACHED:
            answers.popitem(last=False)
        return answer


def _covers(access: Access, model: str) -> bool:
    return access.endpoints is not None and model in access.endpoints


def _digest(token: str) -> bytes:
    # So that the tokens of callers are not kept in memory.
    return hashlib.sha256(token.encode()).digest()


def _token_of(request: Request) -> str:
    scheme, _, token = (request.header(b"authorization") or "").partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise Unauthenticated("Send a token with scope predict: Authorization: Bearer …")
    # Refused without a question to the dashboard.
    if not token.startswith(PREFIX) or len(token) > _MAX_TOKEN or not token.isascii():
        raise Unauthenticated("The token is not valid")
    return token
