"""Notifies this process's readers when there are new events or changed permissions.

There is one hub per process. It subscribes to the broker's hints and polls the database once a second, in
case a hint is lost. It keeps the newest events of each watched root job in a ring buffer, read once for all
its readers. Readers pull from their own cursors, so a slow reader needs no queue.
"""

import asyncio
import contextlib
import contextvars
import json
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import redis.asyncio as redis
from channels.db import database_sync_to_async
from django.conf import settings
from django.db import DatabaseError
from redis.exceptions import RedisError

from jobs import hints
from jobs.queries.runs import events
from jobs.queries.runs.codec import Event, event_weight

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
RING_EVENTS = 2000
# A metric event may have thousands of points; this many take about 10 MB.
RING_POINTS = 50_000
READ_LIMIT = 1000


@dataclass
class WatchedJob:
    """A root job with readers in this process. `ring` holds all events after the cursor `start`."""

    start: int
    readers: int = 0
    ring: deque[Event] = field(default_factory=deque)
    points: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def head(self) -> int:
        """The newest cursor in the ring."""
        return int(self.ring[-1]["cursor"]) if self.ring else self.start

    def add(self, items: list[Event]) -> None:
        """Append new events and evict the oldest."""
        self.ring.extend(items)
        self.points += sum(map(event_weight, items))
        while len(self.ring) > RING_EVENTS or self.points > RING_POINTS:
            oldest = self.ring.popleft()
            self.start = int(oldest["cursor"])
            self.points -= event_weight(oldest)

    def after(self, cursor: int, limit: int) -> list[Event] | None:
        """Return the events after `cursor`; None if the ring no longer contains them all."""
        if cursor < self.start:
            return None
        return events.bounded_events((event for event in self.ring if event["cursor"] > cursor), limit)


class Hub:
    """The jobs that one event loop watches, and the task that updates them."""

    def __init__(self) -> None:
        self._watched: dict[int, WatchedJob] = {}
        self._task: asyncio.Task[None] | None = None
        self._hinted = asyncio.Event()
        self._access_changes: Counter[int] = Counter()
        self._subscriptions = 0
        self._listeners = 0
        self._access_changed = asyncio.Condition()

    @contextlib.asynccontextmanager
    async def watch(self, root_id: int) -> AsyncIterator[WatchedJob]:
        """Keep a root job's events up to date within the block."""
        watched = self._watched.get(root_id)
        if watched is None:
            head = (await _heads([root_id])).get(root_id, 0)
            # Another reader may have created it during the query.
            watched = self._watched.setdefault(root_id, WatchedJob(start=head))
        watched.readers += 1
        try:
            async with self.listen():
                yield watched
        finally:
            watched.readers -= 1
            if not watched.readers:
                self._watched.pop(root_id, None)

    @contextlib.asynccontextmanager
    async def listen(self) -> AsyncIterator[None]:
        """Receive hints within the block."""
        self._listeners += 1
        if self._task is None or self._task.done():
            # In an empty context: with the first request's context, the queries would start a thread for that
            # request again after its end. With an empty one they share the thread of the sockets.
            self._task = asyncio.create_task(self._update_loop(), context=contextvars.Context())
        try:
            yield
        finally:
            self._listeners -= 1
            if not self._listeners and self._task is not None:
                self._task.cancel()
                self._task = None

    async def read(
        self, watched: WatchedJob, root_id: int, cursor: int, limit: int = READ_LIMIT
    ) -> events.Slice:
        """Return the events after `cursor`, from the ring or from the database."""
        items = watched.after(cursor, limit)
        if items is None:
            return await _read(root_id, after=cursor, limit=limit)
        return events.Slice(items, items[-1]["cursor"] if items else cursor)

    def access_changes(self, user_id: int) -> int:
        """Return a count that grows with each change to the user's permissions that this process has seen.

        It also grows with each new subscription, because hints before that were missed, and with
        each deletion.
        """
        return self._access_changes[user_id] + self._subscriptions

    async def wait(
        self, watched: WatchedJob, user_id: int, *, cursor: int, changes: int, seconds: float
    ) -> None:
        """Wait until there is something for a reader to do, at most `seconds`.

        Args:
            watched: the job to read.
            user_id: the reader.
            cursor: return once the job has newer events.
            changes: return once `access_changes` differs.
            seconds: the timeout.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), watched.changed:
                await watched.changed.wait_for(
                    lambda: watched.head > cursor or self.access_changes(user_id) != changes
                )

    async def wait_for_access(self, user_id: int, *, changes: int, seconds: float) -> None:
        """Wait until the user's `access_changes` differ from `changes`, at most `seconds`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._access_changed:
                await self._access_changed.wait_for(lambda: self.access_changes(user_id) != changes)

    async def _update_loop(self) -> None:
        listener = asyncio.create_task(self._listen())
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._hinted.wait(), POLL_SECONDS)
                # Cleared before the queries, so that a hint during them causes another round.
                self._hinted.clear()
                try:
                    if self._watched:
                        await self._refresh()
                except DatabaseError as error:
                    log.warning("events could not be read: %s", error)
        finally:
            listener.cancel()

    async def _refresh(self) -> None:
        heads = await _heads(list(self._watched))
        # A copy, because readers come and leave during each `await`.
        for root_id, watched in list(self._watched.items()):
            while heads.get(root_id, 0) > watched.head:
                new = await _read(root_id, after=watched.head, limit=READ_LIMIT)
                if not new.items:
                    break
                watched.add(new.items)
                async with watched.changed:
                    watched.changed.notify_all()

    async def _listen(self) -> None:
        while True:
            try:
                client = redis.Redis.from_url(settings.TRAINYARD_REDIS_URL)
                async with client, client.pubsub(ignore_subscribe_messages=True) as pubsub:
                    await pubsub.subscribe(hints.channel_name("events"), hints.channel_name("access"))
                    # Hints of the time without a subscription are lost: all readers check their access.
                    self._subscriptions += 1
                    await self._notify_all()
                    async for message in pubsub.listen():
                        await self._on_hint(message["channel"].decode(), message["data"])
            except (RedisError, OSError) as error:
                log.debug("the broker is unavailable, polling instead: %s", error)
                await asyncio.sleep(POLL_SECONDS)

    async def _on_hint(self, channel: str, data: bytes) -> None:
        try:
            hint = dict(json.loads(data))
        except (ValueError, TypeError):
            log.warning("an invalid hint was received: %r", data[:80])
            return
        if channel == hints.channel_name("events"):
            if hint.get("root") in self._watched:
                self._hinted.set()
            return
        if "user" in hint:
            self._access_changes[hint["user"]] += 1
        else:
            self._subscriptions += 1  # something was deleted or restored: every reader checks again
        await self._notify_all()

    async def _notify_all(self) -> None:
        async with self._access_changed:
            self._access_changed.notify_all()
        for watched in list(self._watched.values()):
            async with watched.changed:
                watched.changed.notify_all()


_heads: Callable[[list[int]], Awaitable[dict[int, int]]] = database_sync_to_async(events.newest_cursors)
_read: Callable[..., Awaitable[events.Slice]] = database_sync_to_async(events.read_events)

# One for each loop, because conditions and tasks belong to the loop that created them.
_hubs: dict[asyncio.AbstractEventLoop, Hub] = {}


def hub() -> Hub:
    """Return the running event loop's hub."""
    loop = asyncio.get_running_loop()
    if loop not in _hubs:
        for ended in [other for other in _hubs if other.is_closed()]:
            del _hubs[ended]
        _hubs[loop] = Hub()
    return _hubs[loop]
