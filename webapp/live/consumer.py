"""WebSocket consumers that stream the events of subscribed jobs.

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
from webapp.live.event_stream import may_see, stream_events

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 15.0
MAX_SOCKETS_PER_USER = 20
MAX_JOBS_PER_SOCKET = 50
MAX_MESSAGE_CHARACTERS = 4096
UNAUTHENTICATED, TOO_MANY = 4401, 4429

_open: Counter[int] = Counter()


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels has no types
    """Streams the events of jobs to a user who is logged in."""

    token_id: int | None = None

    async def connect(self) -> None:
        """Accept an authenticated user; close the socket of others with an error code."""
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.heartbeat: asyncio.Task[None] | None = None
        self.user_id = await self.authenticate()
        # Accepted even if it is closed at once: a refused handshake cannot carry a close code.
        await self.accept()
        if self.user_id is None:
            await self.close(UNAUTHENTICATED)
            return
        # Counted before the check, because `disconnect` decrements the count of every authenticated socket.
        _open[self.user_id] += 1
        if _open[self.user_id] > MAX_SOCKETS_PER_USER:
            await self.close(TOO_MANY)
            return
        self.heartbeat = asyncio.create_task(self._heartbeat())

    async def authenticate(self) -> int | None:
        """Return the id of the session's user."""
        user = self.scope.get("user")
        return user.pk if isinstance(user, User) and user.is_active else None

    async def disconnect(self, code: int) -> None:  # noqa: ARG002  signature of the framework
        """Cancel all tasks of this socket."""
        for task in (*self.tasks.values(), self.heartbeat):
            if task is not None:
                task.cancel()
        if self.user_id is not None:
            _open[self.user_id] -= 1
            if _open[self.user_id] <= 0:
                del _open[self.user_id]

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:  # noqa: ARG002
        """Handle one message of the client."""
        message = _parse_message(text_data)
        if message is None:
            await self._error("malformed")
            return
        op, job_id, after = message
        if op == "unsubscribe":
            if task := self.tasks.pop(job_id, None):
                task.cancel()
        elif len(self.tasks) >= MAX_JOBS_PER_SOCKET and job_id not in self.tasks:
            await self._error("too_many_jobs", job=job_id)
        else:
            if task := self.tasks.pop(job_id, None):
                task.cancel()
            self.tasks[job_id] = asyncio.create_task(self._stream(job_id, after))

    async def _stream(self, job_id: int, after: int) -> None:
        user_id = self.user_id
        # Messages may arrive after the close of an unauthenticated socket.
        if user_id is None:
            return
        try:
            job = await may_see(user_id, job_id, self.token_id)
            async for found in stream_events(user_id, job, after=after, token_id=self.token_id):
                if found.items:
                    await self._send(type="events", job=job_id, items=found.items, cursor=found.cursor)
        except TrainyardError as error:
            self.tasks.pop(job_id, None)
            await self._error(error.code, job=job_id)
        except DatabaseError as error:
            log.warning("the event stream of job %s ended with an error: %s", job_id, error)
            self.tasks.pop(job_id, None)
            await self._error("unavailable", job=job_id)

    async def _heartbeat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            await self._send(type="heartbeat")

    async def _error(self, code: str, **fields: int) -> None:
        await self._send(type="error", code=code, **fields)

    async def _send(self, **body: Any) -> None:
        # The server raises it if the socket was closed meanwhile.
        with contextlib.suppress(RuntimeError):
            await self.send(json.dumps(body))


class TokenConsumer(LiveConsumer):
    """The same for scripts. They authenticate with a Bearer token, without cookie and origin."""

    async def authenticate(self) -> int | None:
        """Return the id of the token's user, if the token has the scope read."""
        headers = dict(self.scope.get("headers", []))
        scheme, _, raw = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        found = await _authenticate_token(raw.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            return None
        user_id, self.token_id = found
        return user_id


def _user_and_token(raw: str) -> tuple[int, int] | None:
    token = tokens.authenticate(raw)
    return (token.user_id, token.pk) if token is not None and "read" in token.scopes else None


# Annotated rather than used as a decorator, because channels has no types.
_authenticate_token: Callable[[str], Awaitable[tuple[int, int] | None]] = database_sync_to_async(
    _user_and_token
)


def _parse_message(text: str | None) -> tuple[str, int, int] | None:
    if text is None or len(text) > MAX_MESSAGE_CHARACTERS:
        return None
    try:
        body = json.loads(text)
    except ValueError:
        return None
    if not isinstance(body, dict) or body.get("op") not in ("subscribe", "unsubscribe"):
        return None
    job, after = _database_integer(body.get("job")), _database_integer(body.get("after") or 0)
    return None if job is None or after is None else (str(body["op"]), job, after)


def _database_integer(value: object) -> int | None:
    # JSON's true would be 1, and the database raises an error for a number of more than 64 bits.
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        return None
    return value
