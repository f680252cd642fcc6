"""Tells the readers in this process that a job has new events, or that what they may see has changed.

One hub a process: it follows the hints of the broker, and once a second asks the database for events,
which repairs a lost hint. It keeps the newest events of each watched root in a small ring, read once for all
its readers. Readers pull from their own cursors, so a slow one queues nothing.
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
from jobs.queries import events
from jobs.queries.codec import Event, weight

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
RING_EVENTS = 2000
RING_POINTS = 50_000
"""A metric event may hold thousands of points; so many take some 10 MB."""
READ_LIMIT = 1000


@dataclass
class Watch:
    """A root job that somebody in this process reads: `ring` holds all events after `start`."""

    start: int
    readers: int = 0
    ring: deque[Event] = field(default_factory=deque)
    points: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def head(self) -> int:
        """Return the newest cursor in the ring."""
        return int(self.ring[-1]["cursor"]) if self.ring else self.start

    def add(self, items: list[Event]) -> None:
        """Append fresh events; the oldest fall out."""
        self.ring.extend(items)
        self.points += sum(map(weight, items))
        while len(self.ring) > RING_EVENTS or self.points > RING_POINTS:
            oldest = self.ring.popleft()
            self.start = int(oldest["cursor"])
            self.points -= weight(oldest)

    def after(self, cursor: int, limit: int) -> list[Event] | None:
        """Return the events after `cursor`, None where the ring does not reach back that far."""
        if cursor < self.start:
            return None
        return events.bounded((event for event in self.ring if event["cursor"] > cursor), limit)


class Hub:
    """The watches of one event loop, and the task that feeds them while there are any."""

    def __init__(self) -> None:
        self._watches: dict[int, Watch] = {}
        self._task: asyncio.Task[None] | None = None
        self._hinted = asyncio.Event()
        self._access_changes: Counter[int] = Counter()
        self._subscriptions = 0

    @contextlib.asynccontextmanager
    async def watching(self, root_id: int) -> AsyncIterator[Watch]:
        """Feed a root's watch for as long as the block lasts."""
        watch = self._watches.get(root_id)
        if watch is None:
            head = (await _heads([root_id])).get(root_id, 0)
            watch = self._watches.setdefault(root_id, Watch(start=head))
        watch.readers += 1
        if self._task is None or self._task.done():
            # In a context of its own: in that of the request which happens to be the first, its queries would
            # begin a thread for that request again after its end. So they share the sockets' one.
            self._task = asyncio.create_task(self._feed(), context=contextvars.Context())
        try:
            yield watch
        finally:
            watch.readers -= 1
            if not watch.readers:
                self._watches.pop(root_id, None)
            if not self._watches and self._task is not None:
                self._task.cancel()
                self._task = None

    async def read(self, watch: Watch, root_id: int, cursor: int, limit: int = READ_LIMIT) -> events.Slice:
        """Return the events after `cursor`, from the ring or from the database."""
        items = watch.after(cursor, limit)
        if items is None:
            return await _read(root_id, cursor, limit)
        return events.Slice(items, items[-1]["cursor"] if items else cursor)

    def access_changes(self, user_id: int) -> int:
        """Return how often the rights of a person changed, as far as this process knows.

        It counts whenever it begins to listen too: what was said before that, nobody heard.
        """
        return self._access_changes[user_id] + self._subscriptions

    async def wait(self, watch: Watch, user_id: int, *, cursor: int, changes: int, seconds: float) -> None:
        """Return when there is something for a reader to do, or after `seconds`.

        Args:
            watch: what is read.
            user_id: who reads.
            cursor: return when the watch goes past it.
            changes: return when `access_changes` is another number.
            seconds: how long to wait at most.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), watch.changed:
                await watch.changed.wait_for(
                    lambda: watch.head > cursor or self.access_changes(user_id) != changes
                )

    async def _feed(self) -> None:
        listener = asyncio.create_task(self._listen())
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._hinted.wait(), POLL_SECONDS)
                self._hinted.clear()
                try:
                    await self._refresh()
                except DatabaseError as error:
                    log.warning("events cannot be read now: %s", error)
        finally:
            listener.cancel()

    async def _refresh(self) -> None:
        heads = await _heads(list(self._watches))
        for root_id, watch in list(self._watches.items()):
            while heads.get(root_id, 0) > watch.head:
                fresh = await _read(root_id, watch.head, READ_LIMIT)
                if not fresh.items:
                    break
                watch.add(fresh.items)
                async with watch.changed:
                    watch.changed.notify_all()

    async def _listen(self) -> None:
        while True:
            try:
                client = redis.Redis.from_url(settings.TRAINYARD_REDIS_URL)
                async with client, client.pubsub(ignore_subscribe_messages=True) as pubsub:
                    await pubsub.subscribe(hints.channel("events"), hints.channel("access"))
                    self._subscriptions += 1
                    await self._wake_all()
                    async for message in pubsub.listen():
                        await self._heard(message["channel"].decode(), message["data"])
            except (RedisError, OSError) as error:
                log.debug("no hints, polling: %s", error)
                await asyncio.sleep(POLL_SECONDS)

    async def _heard(self, channel: str, data: bytes) -> None:
        try:
            hint = dict(json.loads(data))
        except (ValueError, TypeError):
            log.warning("a hint that is none: %r", data[:80])
            return
        if channel == hints.channel("events"):
            if hint.get("root") in self._watches:
                self._hinted.set()
            return
        self._access_changes[hint.get("user", 0)] += 1
        await self._wake_all()

    async def _wake_all(self) -> None:
        for watch in list(self._watches.values()):
            async with watch.changed:
                watch.changed.notify_all()


def _read_now(root_id: int, after: int, limit: int) -> events.Slice:
    return events.read(root_id, after=after, limit=limit)


_heads: Callable[[list[int]], Awaitable[dict[int, int]]] = database_sync_to_async(events.head)
_read: Callable[[int, int, int], Awaitable[events.Slice]] = database_sync_to_async(_read_now)


_hubs: dict[asyncio.AbstractEventLoop, Hub] = {}


def hub() -> Hub:
    """Return the hub of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _hubs:
        for ended in [other for other in _hubs if other.is_closed()]:
            del _hubs[ended]
        _hubs[loop] = Hub()
    return _hubs[loop]
