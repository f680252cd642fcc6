"""Batches the requests of one version: dispatches at once to an idle child, collects while it is busy."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy.typing as npt

from workers.serving.errors import BadRequest, BodyTooLarge, Saturated, ServingError, Unavailable
from workers.serving.frames import Frame
from workers.serving.versions.child_process import ChildExited, ChildFailed, concatenated

Array = npt.NDArray[Any]
Outputs = list[Array]

_MAX_TRIES = 2  # a request whose child dies is retried once: it may not be the cause


class Child(Protocol):
    """The interface of a model child that the batcher uses."""

    def predict(self, tensors: Sequence[Array]) -> asyncio.Future[Frame]:
        """Send one batch; the future gets its outputs."""

    def kill(self) -> None:
        """Kill the child."""


class WorkItem:
    """Rows of one request, at most one batch, and the future of their outputs."""

    __slots__ = ("arrays", "future", "queued_at", "rows", "shapes", "tries")

    def __init__(self, arrays: Sequence[Array]) -> None:
        self.arrays = arrays
        self.rows = len(arrays[0])
        self.shapes = [array.shape[1:] for array in arrays]
        self.future: asyncio.Future[Outputs] = asyncio.get_running_loop().create_future()
        self.queued_at = time.monotonic()
        self.tries = 0


class Batcher:
    """Queues requests and sends them to one child in batches. The queue survives restarts of the child."""

    def __init__(
        self,
        *,
        max_batch: int,
        queue_rows: int,
        batch_seconds: float,
        observe: Callable[[int, float, float], None] = lambda rows, queued, ran: None,  # noqa: ARG005
    ) -> None:
        """Create an empty queue.

        Args:
            max_batch: maximum rows in one call of the model.
            queue_rows: maximum rows waiting; further requests are refused.
            batch_seconds: a child that takes longer for a batch is killed.
            observe: called for each batch: rows, seconds its oldest item waited, seconds it ran.
        """
        self._max_batch, self._queue_rows, self._batch_seconds = max_batch, queue_rows, batch_seconds
        self._observe = observe
        self._queue: deque[WorkItem] = deque()
        self._child: Child | None = None
        self._running: list[WorkItem] = []
        self._dispatch_due = False
        self._refusal: str | None = None
        self._seconds_per_row = 0.0
        self._idle = asyncio.Event()
        self._idle.set()
        self.waiting_rows = 0

    def submit(self, arrays: Sequence[Array]) -> list[WorkItem]:
        """Queue a request, split into several items if it exceeds one batch.

        Args:
            arrays: inputs [rows, …] in the signature's order.

        Raises:
            BodyTooLarge: it exceeds the queue's capacity.
            Saturated: the queue is too full for it now.
            Unavailable: the version accepts no requests.
        """
        rows = len(arrays[0])
        if self._refusal is not None:
            raise Unavailable(self._refusal, retry_after=1)
        if rows > self._queue_rows:
            raise BodyTooLarge(f"The request has {rows} rows; the limit is {self._queue_rows}")
        if self.waiting_rows + rows > self._queue_rows:
            wait = math.ceil(self.waiting_rows * self._seconds_per_row)
            raise Saturated(f"The queue is full: {self.waiting_rows} rows wait", retry_after=max(1, wait))
        if rows <= self._max_batch:
            items = [WorkItem(arrays)]
        else:
            starts = range(0, rows, self._max_batch)
            items = [
                WorkItem([array[start : start + self._max_batch] for array in arrays]) for start in starts
            ]
        self._queue.extend(items)
        self.waiting_rows += rows
        self._idle.clear()
        self._dispatch_soon()
        return items

    def cancel(self, items: Sequence[WorkItem], error: ServingError) -> None:
        """Fail items with `error` and remove them from the queue. A running batch is not interrupted."""
        for item in items:
            if item.future.done():
                continue
            _fail(item, error)
            if item not in self._running:
                self._queue.remove(item)
                self.waiting_rows -= item.rows
        self._update_idle()

    def attach(self, child: Child) -> None:
        """Accept requests and send them to `child`."""
        self._child, self._refusal = child, None
        self._dispatch_soon()

    def detach(self) -> None:
        """Keep requests queued until the next child is attached."""
        self._child = None

    def refuse(self, reason: str) -> None:
        """Fail all queued and new requests until a child is attached."""
        self._child, self._refusal = None, reason
        self.cancel(list(self._queue), Unavailable(reason, retry_after=1))

    async def drained(self, seconds: float) -> bool:
        """Wait until all requests are answered, at most `seconds`; return whether they are."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    def _dispatch_soon(self) -> None:
        # deferred, so that requests of the same turn of the event loop share a batch
        if not self._dispatch_due:
            self._dispatch_due = True
            asyncio.get_running_loop().call_soon(self._dispatch)

    def _dispatch(self) -> None:
        self._dispatch_due = False
        if self._running or self._child is None or not self._queue:
            return
        self._running = items = self._collect()
        child, began = self._child, time.monotonic()
        watchdog = asyncio.get_running_loop().call_later(self._batch_seconds, child.kill)
        answer = child.predict(concatenated([item.arrays for item in items]))

        def done(answer: asyncio.Future[Frame]) -> None:
            watchdog.cancel()
            self._finish(items, answer, began)

        answer.add_done_callback(done)

    def _collect(self) -> list[WorkItem]:
        first = self._queue.popleft()
        items, rows = [first], first.rows
        while self._queue:
            following = self._queue[0]
            if rows + following.rows > self._max_batch or following.shapes != first.shapes:
                break
            items.append(self._queue.popleft())
            rows += following.rows
        self.waiting_rows -= rows
        return items

    def _finish(self, items: list[WorkItem], answer: asyncio.Future[Frame], began: float) -> None:
        self._running = []
        error = answer.exception()
        if error is None:
            self._deliver(items, answer.result().tensors, began)
        elif isinstance(error, ChildExited):
            self._retry(items)
        else:
            text = str(error) if isinstance(error, ChildFailed) else f"{type(error).__name__}: {error}"
            for item in items:
                _fail(item, BadRequest(text))
        self._update_idle()
        self._dispatch()

    def _deliver(self, items: list[WorkItem], outputs: Outputs, began: float) -> None:
        start = 0
        for item in items:
            if not item.future.done():
                item.future.set_result([output[start : start + item.rows] for output in outputs])
            start += item.rows
        ran = time.monotonic() - began
        self._seconds_per_row = 0.8 * self._seconds_per_row + 0.2 * ran / start
        self._observe(start, began - items[0].queued_at, ran)

    def _retry(self, items: list[WorkItem]) -> None:
        self._child = None  # the version attaches the next child
        for item in reversed(items):
            item.tries += 1
            if item.tries >= _MAX_TRIES or self._refusal is not None:
                _fail(item, Unavailable("The model's process ended while it answered", retry_after=1))
            elif not item.future.done():
                self._queue.appendleft(item)
                self.waiting_rows += item.rows

    def _update_idle(self) -> None:
        if not self._queue and not self._running:
            self._idle.set()


def _fail(item: WorkItem, error: ServingError) -> None:
    if not item.future.done():
        item.future.set_exception(error)
        item.future.exception()  # marks it as retrieved: only the first failure of a split request is awaited
