"""Authenticates callers by token. On a loopback address no token is needed.

A request never waits for the dashboard if its token is known: a loop asks for all known tokens again every
few seconds. While the dashboard does not answer in time, the last answers hold for a stated time.
"""

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Collection
from typing import Protocol

from workers.model_process.errors import Forbidden, Unauthenticated, Unavailable
from workers.serving.access import Access
from workers.serving.asgi import Request
from workers.serving.known_callers import Caller, KnownCallers
from workers.serving.releases.dashboard import MAX_DIGESTS, DashboardRefused

logger = logging.getLogger("trainyard.serving")

PREFIX = "ty_"
# A revoked token is accepted for this long at most, while the dashboard answers.
_CACHE_SECONDS = 10.0
_REFRESH_SECONDS = 4.0
# A burst of new tokens makes few writes.
_SAVE_PAUSE = 2.0
# A full disk is tried again often, and logged seldom.
_COMPLAINT_SECONDS = 60.0
# While the dashboard does not answer, until the next question.
_RETRY_SECONDS = 1.0
# The time that a request with a new token waits for an answer. A dashboard that needs longer counts as away.
_WAIT_SECONDS = 1.0
# An endpoint may have been created since the last answer.
_RECHECK_SECONDS = 1.0
# Callers may send any number of invalid tokens.
_MAX_UNKNOWN = 10_000
_MAX_TOKEN = 200
# Lookups share the connections of the poll for releases.
_MAX_LOOKUPS = 16
_MAX_WAITING_LOOKUPS = 256


class AccessLookup(Protocol):
    """Looks up the access that tokens give."""

    async def access_of(self, token: str) -> Access | None:
        """Return a token's access; None if it is unknown. Raises OSError if there is no answer."""

    async def known_access(self, digests: Collection[str], used: Collection[str]) -> dict[str, Access]:
        """Return the access of those tokens that are valid. Raises OSError if there is no answer."""


class TokenAuthenticator:
    """Checks tokens by the dashboard's answers, which are kept by the token's digest.

    Args:
        lookup: the dashboard.
        callers: its answers.
    """

    def __init__(self, lookup: AccessLookup, callers: KnownCallers) -> None:
        self._lookup, self._callers = lookup, callers
        # Apart, so that invalid tokens evict no known one.
        self._unknown: OrderedDict[str, float] = OrderedDict()
        self._lookups: dict[str, asyncio.Task[None]] = {}
        self._free_lookups = asyncio.Semaphore(_MAX_LOOKUPS)
        self._is_away = False
        self._is_unsaved = asyncio.Event()
        self._complain_at = 0.0

    @property
    def problem(self) -> str | None:
        """Why no caller at all can be answered now; None if some can."""
        if self._is_away and self._callers.is_empty:
            return "the dashboard does not answer, and no token is known yet"
        return None

    async def check(self, request: Request) -> Access:
        """Return the access that a request's token gives.

        Raises:
            Unauthenticated: there is no Bearer token, or it is unknown or expired.
            Forbidden: it is not for predictions.
            Unavailable: the token is not known, and the dashboard does not answer now.
        """
        return _checked(await self._caller(_token_of(request), _CACHE_SECONDS))

    async def check_scrape(self, request: Request) -> None:
        """Check that a request's token may read metrics. Raises like `check`."""
        access = (await self._caller(_token_of(request), _CACHE_SECONDS)).access
        if access.is_expired:
            raise Unauthenticated("The token is not valid")
        if not access.metrics:
            raise Forbidden("The token lacks the scope metrics")

    async def reaches(self, request: Request, model: str) -> bool:
        """Return whether a request's token reaches an endpoint. Raises like `check`."""
        token = _token_of(request)
        if _covers(_checked(await self._caller(token, _CACHE_SECONDS)), model):
            return True
        return _covers(_checked(await self._caller(token, _RECHECK_SECONDS)), model)

    def is_known(self, request: Request, model: str) -> bool:
        """Return whether a kept answer allows a request without a warning. Otherwise ask `check`."""
        try:
            caller = self._callers.get(_digest(_token_of(request)))
        except Unauthenticated:
            return False
        if caller is None or not self._is_current(caller, _CACHE_SECONDS):
            return False
        access = caller.access
        if not _covers(access, model) or access.is_expired or access.warning:
            return False
        self._callers.use(caller)
        return True

    async def keep_current(self) -> None:
        """Ask for all known tokens again and again, until cancelled."""
        while True:
            await self.refresh()
            self._is_unsaved.set()
            await asyncio.sleep(_RETRY_SECONDS if self._is_away else _REFRESH_SECONDS)

    async def refresh(self) -> None:
        """Ask for all known tokens once. Without any, this finds out whether the dashboard answers."""
        digests = self._callers.digests()
        for start in range(0, max(1, len(digests)), MAX_DIGESTS):
            part = digests[start : start + MAX_DIGESTS]
            asking = asyncio.create_task(self._ask_again(part))
            try:
                if not (await asyncio.wait({asking}, timeout=_WAIT_SECONDS))[0]:
                    self._set_away("it needs more than a second for an answer")
                if not await asking:
                    return
            finally:
                asking.cancel()

    async def keep_saved(self) -> None:
        """Save new answers soon, until cancelled: a server that is killed needs them at its next start."""
        while True:
            await self._is_unsaved.wait()
            self._is_unsaved.clear()
            await self.save()
            await asyncio.sleep(_SAVE_PAUSE)

    async def save(self) -> None:
        """Save the answers if they have changed. A full disk must not end the check of tokens."""
        if (callers := self._callers.to_save()) is None:
            return
        try:
            await asyncio.to_thread(self._callers.save, callers)
        except OSError as error:
            if time.monotonic() >= self._complain_at:
                self._complain_at = time.monotonic() + _COMPLAINT_SECONDS
                logger.error("the known callers could not be saved: %s", error)

    async def close(self) -> None:
        """Save the answers, and abandon the questions that have none yet."""
        await self.save()
        tasks = list(self._lookups.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask_again(self, digests: list[str]) -> bool:
        """Ask for some tokens; return whether there was an answer."""
        used = self._callers.take_used(digests)
        began = time.monotonic()
        try:
            known = await self._lookup.known_access(digests, used)
        except DashboardRefused:
            # It refuses this server, not its callers: each token is looked up when it is used.
            return False
        except OSError as error:
            self._set_away(error)
            return False
        self._note_speed(began)
        for digest in digests:
            self._store(digest, known.get(digest))
        return True

    async def _caller(self, token: str, valid_seconds: float) -> Caller:
        """Return a token's caller. Only an answer that is missing or old is waited for, and not for long."""
        digest = _digest(token)
        caller = self._callers.get(digest)
        if caller is None and time.monotonic() - self._unknown.get(digest, -1e9) < _CACHE_SECONDS:
            raise Unauthenticated("The token is not valid")
        if caller is None or not self._is_current(caller, valid_seconds):
            await self._look_up(digest, token)
            caller = self._callers.get(digest)
        if caller is None:
            if digest in self._unknown:
                raise Unauthenticated("The token is not valid")
            raise Unavailable("The token cannot be checked now", retry_after=1 if not self._is_away else 5)
        self._callers.use(caller)
        return caller

    def _is_current(self, caller: Caller, valid_seconds: float) -> bool:
        """Return whether an answer is young enough, or there can be none that is younger."""
        return self._is_away or time.monotonic() - max(caller.confirmed, caller.tried) < valid_seconds

    async def _look_up(self, digest: str, token: str) -> None:
        """Ask for one token, once for all requests with it, and wait while the dashboard answers quickly."""
        task = self._lookups.get(digest)
        if task is None:
            if len(self._lookups) >= _MAX_WAITING_LOOKUPS:
                return
            task = self._lookups[digest] = asyncio.create_task(self._ask(digest, token))
            task.add_done_callback(lambda _: self._lookups.pop(digest, None))
        if self._is_away or (await asyncio.wait({task}, timeout=_WAIT_SECONDS))[0]:
            return
        # Otherwise it may have waited for others, of which any caller may make many.
        if not self._free_lookups.locked():
            self._set_away("it needs more than a second for an answer")

    async def _ask(self, digest: str, token: str) -> None:
        try:
            async with self._free_lookups:
                began = time.monotonic()
                access = await self._lookup.access_of(token)
        except DashboardRefused as error:
            logger.warning("a token could not be looked up: %s", error)
            # The next request must not ask again at once: too many questions may be the reason.
            if (caller := self._callers.get(digest)) is not None:
                caller.tried = time.monotonic()
        except OSError as error:
            self._set_away(error)
        else:
            self._note_speed(began)
            self._store(digest, access)
            self._is_unsaved.set()

    def _store(self, digest: str, access: Access | None) -> None:
        if access is not None:
            self._unknown.pop(digest, None)
            self._callers.put(digest, access)
            return
        self._callers.remove(digest)
        self._unknown[digest] = time.monotonic()
        while len(self._unknown) > _MAX_UNKNOWN:
            self._unknown.popitem(last=False)

    def _note_speed(self, began: float) -> None:
        """Take the dashboard for present if its answer was quick."""
        if self._is_away and time.monotonic() - began < _WAIT_SECONDS:
            self._is_away = False
            logger.info("the dashboard answers again: new tokens are looked up")

    def _set_away(self, reason: object) -> None:
        if not self._is_away:
            logger.warning(
                "the dashboard answers no questions about tokens, known ones keep working: %s", reason
            )
        self._is_away = True


def _checked(caller: Caller) -> Access:
    access = caller.access
    if access.is_expired:
        raise Unauthenticated("The token is not valid")
    if access.endpoints is None:
        raise Forbidden("The token lacks the scope predict")
    return access


def _covers(access: Access, model: str) -> bool:
    return access.endpoints is not None and model in access.endpoints


def _digest(token: str) -> str:
    # So that the tokens of callers are not kept in memory or on disk.
    return hashlib.sha256(token.encode()).hexdigest()


def _token_of(request: Request) -> str:
    scheme, _, token = (request.header(b"authorization") or "").partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise Unauthenticated("Send a token with scope predict: Authorization: Bearer …")
    # Refused without a question to the dashboard.
    if not token.startswith(PREFIX) or len(token) > _MAX_TOKEN or not token.isascii():
        raise Unauthenticated("The token is not valid")
    return token
