"""The WebSocket: one a tab, any number of jobs followed through it.

Client: `{"op": "subscribe", "job": id, "after": cursor | null}`, `{"op": "unsubscribe", "job": id}`.
Server: `events`, `heartbeat`, `error`; see docs/live.md.
"""

import asyncio
import contextlib
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError

from jobs.actions import tokens
from jobs.errors import TrainyardError
from jobs.models import User
from webapp.live.follow import follow, may_see

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 15.0
SOCKETS_A_USER = 20
JOBS_A_SOCKET = 50
LARGEST_MESSAGE = 4096
UNAUTHENTICATED, TOO_MANY = 4401, 4429

_open: Counter[int] = Counter()


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels has no types
    """Follows jobs for a logged-in person."""

    token_id: int | None = None

    async def connect(self) -> None:
        """Accept a person; refuse everybody else with a code that says why."""
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.beat: asyncio.Task[None] | None = None
        self.user_id = await self.who()
        await self.accept()
        if self.user_id is None:
            await self.close(UNAUTHENTICATED)
            return
        _open[self.user_id] += 1
        if _open[self.user_id] > SOCKETS_A_USER:
            await self.close(TOO_MANY)
            return
        self.beat = asyncio.create_task(self._heartbeat())

    async def who(self) -> int | None:
        """Return the id of the person behind the session."""
        user = self.scope.get("user")
        return user.pk if isinstance(user, User) and user.is_active else None

    async def disconnect(self, code: int) -> None:  # noqa: ARG002  the framework's signature
        """End everything this socket started."""
        for task in (*self.tasks.values(), self.beat):
            if task is not None:
                task.cancel()
        if self.user_id is not None:
            _open[self.user_id] -= 1
            if _open[self.user_id] <= 0:
                del _open[self.user_id]

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:  # noqa: ARG002
        """Take one order of the client."""
        order = _parse(text_data)
        if order is None:
            await self._error("malformed")
            return
        op, job_id, after = order
        if op == "unsubscribe":
            if task := self.tasks.pop(job_id, None):
                task.cancel()
        elif len(self.tasks) >= JOBS_A_SOCKET and job_id not in self.tasks:
            await self._error("too_many_jobs", job=job_id)
        else:
            if task := self.tasks.pop(job_id, None):
                task.cancel()
            self.tasks[job_id] = asyncio.create_task(self._follow(job_id, after))

    async def _follow(self, job_id: int, after: int) -> None:
        user_id = self.user_id
        if user_id is None:
            return
        try:
            job = await may_see(user_id, job_id, self.token_id)
            async for found in follow(user_id, job, after=after, token_id=self.token_id):
                if found.items:
                    await self._send(type="events", job=job_id, items=found.items, cursor=found.cursor)
        except TrainyardError as error:
            self.tasks.pop(job_id, None)
            await self._error(error.code, job=job_id)
        except DatabaseError as error:
            log.warning("live events of job %s broke off: %s", job_id, error)
            self.tasks.pop(job_id, None)
            await self._error("unavailable", job=job_id)

    async def _heartbeat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            await self._send(type="heartbeat")

    async def _error(self, code: str, **fields: int) -> None:
        await self._send(type="error", code=code, **fields)

    async def _send(self, **body: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the socket closed under our hands
            await self.send(json.dumps(body))


class TokenConsumer(LiveConsumer):
    """The same for scripts: `Authorization: Bearer ty_…`, no cookie, no origin."""

    async def who(self) -> int | None:
        """Return the id of the token's person, if the token may read."""
        headers = dict(self.scope.get("headers", []))
        scheme, _, raw = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        found = await _by_token(raw.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            return None
        user_id, self.token_id = found
        return user_id


def _user_and_token(raw: str) -> tuple[int, int] | None:
    token = tokens.authenticate(raw)
    return (token.user_id, token.pk) if token is not None and "read" in token.scopes else None


_by_token: Callable[[str], Awaitable[tuple[int, int] | None]] = database_sync_to_async(_user_and_token)


def _parse(text: str | None) -> tuple[str, int, int] | None:
    if text is None or len(text) > LARGEST_MESSAGE:
        return None
    try:
        body = json.loads(text)
    except ValueError:
        return None
    if not isinstance(body, dict) or body.get("op") not in ("subscribe", "unsubscribe"):
        return None
    job, after = _id(body.get("job")), _id(body.get("after") or 0)
    return None if job is None or after is None else (str(body["op"]), job, after)


def _id(value: object) -> int | None:
    is_id = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    return int(value) if is_id and isinstance(value, int) else None
