"""Bounds how many requests without valid credentials have a thread at the same time; the others wait for one.

Each thread takes its share of Python's only lock. With two hundred threads, the event loop and `/healthz` got
it so rarely that they took half a minute to answer.
"""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from django.conf import settings

from webapp.limits.callers import find_caller
from webapp.limits.refusals import Scope
from webapp.limits.requests import ALWAYS_ANSWERED

AT_ONCE = 4
# So many requests that claim to have credentials get a thread without a check of them.
UNCHECKED = 4
CHECKS_AT_ONCE = 2
# The view checks credentials in any case; this result only decides who waits.
VALID_SECONDS = 10.0
MAX_VALID = 10_000

type Headers = list[tuple[bytes, bytes]]


class ThreadPlaces:
    """Gives requests their turn. A request that waits has been read, and computes nothing."""

    def __init__(self) -> None:
        self._places, self._checks = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(CHECKS_AT_ONCE)
        self._unchecked = 0
        # Digest of credentials that are valid → until when, in seconds of the monotonic clock.
        self._valid: dict[bytes, float] = {}

    @asynccontextmanager
    async def turn(self, scope: Scope) -> AsyncIterator[None]:
        """Wait until a request may have a thread."""
        if scope["path"] in ALWAYS_ANSWERED:
            yield
        elif not (credentials := _credentials(scope["headers"])):
            async with self._places:
                yield
        elif self._unchecked < UNCHECKED:
            self._unchecked += 1
            try:
                yield
            finally:
                self._unchecked -= 1
        elif await self._is_valid(credentials):
            yield
        else:
            async with self._places:
                yield

    async def _is_valid(self, credentials: Headers) -> bool:
        key = hashlib.sha256(repr(credentials).encode()).digest()
        if self._valid.get(key, 0.0) > time.monotonic():
            return True
        async with self._checks:
            if await find_caller(credentials) is None:
                return False
        if len(self._valid) >= MAX_VALID:
            self._valid.clear()
        self._valid[key] = time.monotonic() + VALID_SECONDS
        return True


def _credentials(headers: Headers) -> Headers:
    """Return the headers with a token or a session cookie, valid or not."""
    session = f"{settings.SESSION_COOKIE_NAME}=".encode()
    return [
        (name, value)
        for name, value in headers
        if name == b"authorization" or (name == b"cookie" and session in value)
    ]
