"""WebSocket consumers that stream events from subscribed jobs.

Client: `{"op": "subscribe", "job": id, "after": cursor | null}`, `{"op": "unsubscribe", "job": id}`.
Server: `events`, `heartbeat`, `error`; see docs/live.md.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError

from jobs.actions.people import tokens
from jobs.errors import TrainyardError
from jobs.models import User
from jobs.models.sessions import stored_key
from webapp.http_errors import Throttled
from webapp.live import readers
from webapp.live.event_stream import (
    ACCESS_CHECK_INTERVAL,
    Reader,
    may_see,
    require_valid,
    stream_events,
)
from webapp.live.hub import hub

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 15.0
MAX_JOBS_PER_SOCKET = 50
MAX_MESSAGE_CHARACTERS = 4096
UNAUTHENTICATED, TOO_MANY = 4401, 4429


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels has no types
    """Streams jobs' events to a user who is logged in, until the session ends."""

    async def __call__(self, *messages: Any) -> None:
        """Serve the socket to its end, and then free everything that it holds, also after an error."""
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.background: list[asyncio.Task[None]] = []
        self.open_until = contextlib.ExitStack()
        try:
            await super().__call__(*messages)
        finally:
            self._free()

    async def connect(self) -> None:
        """Accept an authenticated user; close the socket of others with an error code."""
        self.reader = await self.authenticate()
        # Accepted even if it is closed at once: a refused handshake cannot carry a close code.
        await self.accept()
        if self.reader is None:
            await self.close(UNAUTHENTICATED)
            return
        try:
            self.open_until.enter_context(readers.counted(readers.SOCKETS, self.reader.user_id))
        except Throttled as error:
            await self.close(TOO_MANY, error.message)
            return
        guard = self._close_when_invalid(self.reader)
        self.background = [asyncio.create_task(self._heartbeat()), asyncio.create_task(guard)]

    async def authenticate(self) -> Reader | None:
        """Return the session's user, and the session."""
        user, session = self.scope.get("user"), self.scope.get("session")
        if not isinstance(user, User) or not user.is_active or session is None:
            return None
        return Reader(user.pk, session=stored_key(session.session_key or ""))

    async def disconnect(self, code: int) -> None:  # noqa: ARG002  signature of the framework
        """Cancel all tasks on this socket."""
        self._free()

    def _free(self) -> None:
        for task in (*self.tasks.values(), *self.background):
            task.cancel()
        self.open_until.close()

    async def _close_when_invalid(self, reader: Reader) -> None:
        """Close the socket when its session or token ends: after a hint, else at the next regular check."""
        async with hub().listen():
            while True:
                # Read before the check, so that a change during the check causes another one.
                changes = hub().access_changes(reader.user_id)
                try:
                    await require_valid(reader)
                except TrainyardError:
                    break
                except DatabaseError as error:
                    log.warning("a live connection could not be checked: %s", error)
                await hub().wait_for_access(reader.user_id, changes=changes, seconds=ACCESS_CHECK_INTERVAL)
        for task in self.tasks.values():
            task.cancel()
        with contextlib.suppress(RuntimeError):
            await self.close(UNAUTHENTICATED)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:  # noqa: ARG002
        """Handle one message from the client."""
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
        # Messages may arrive after the close of an unauthenticated socket.
        if self.reader is None:
            return
        try:
            job = await may_see(self.reader, job_id)
            async for batch in stream_events(self.reader, job, after=after):
                if batch.items:
                    await self._send(type="events", job=job_id, items=batch.items, cursor=batch.cursor)
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
        # The server raises them if the socket was closed meanwhile.
        with contextlib.suppress(RuntimeError, OSError):
            await self.send(json.dumps(body))


class TokenConsumer(LiveConsumer):
    """The same for scripts. They authenticate with a Bearer token, without cookie and origin."""

    async def authenticate(self) -> Reader | None:
        """Return the token's user, and the token, if it has the scope read."""
        headers = dict(self.scope.get("headers", []))
        scheme, _, raw = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        return await _authenticate_token(raw.strip()) if scheme.lower() == "bearer" else None


def _reader_of_token(raw: str) -> Reader | None:
    token = tokens.authenticate(raw)
    return Reader(token.user_id, token_id=token.pk) if token is not None and "read" in token.scopes else None


# Annotated rather than used as a decorator, because channels has no types.
_authenticate_token: Callable[[str], Awaitable[Reader | None]] = database_sync_to_async(_reader_of_token)


def _parse_message(text: str | None) -> tuple[str, int, int] | None:
    if text is None or len(text) > MAX_MESSAGE_CHARACTERS:
        return None
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
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
