"""The queue in front of one version: dispatch at once when its child is idle, collect while it is busy."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy.typing as npt

from workers.serving.errors import BadRequest, BodyTooLarge, Saturated, ServingError, Unavailable
from workers.serving.versions.link import ChildFailed, ChildGone, concatenated
from workers.serving.wire import Frame

Array = npt.NDArray[Any]
Outputs = list[Array]

_TRIES = 2  # a request whose child dies is tried once more: it may have been that child's bad luck


class Link(Protocol):
    """What the batcher needs of a child."""

    def predict(self, tensors: Sequence[Array]) -> asyncio.Future[Frame]:
        """Send one batch."""

    def kill(self) -> None:
        """End the child at once."""


class Work:
    """At most one batch of rows of one request, and the future of their outputs."""

    __slots__ = ("arrays", "future", "queued_at", "rows", "shapes", "tries")

    def __init__(self, arrays: Sequence[Array]) -> None:
        self.arrays = arrays
        self.rows = len(arrays[0])
        self.shapes = [array.shape[1:] for array in arrays]
        self.future: asyncio.Future[Outputs] = asyncio.get_running_loop().create_future()
        self.queued_at = time.monotonic()
        self.tries = 0


class Batcher:
    """Gathers requests into batches for one child; survives the child's restarts."""

    def __init__(
        self,
        *,
        max_batch: int,
        queue_rows: int,
        batch_seconds: float,
        observe: Callable[[int, float, float], None] = lambda rows, queued, ran: None,  # noqa: ARG005
    ) -> None:
        """Set the bounds.

        Args:
            max_batch: most rows in one call of the model.
            queue_rows: most rows waiting; more are refused.
            batch_seconds: a child that is silent for longer is killed.
            observe: told of each batch: rows, seconds that its oldest work queued, seconds it ran.
        """
        self._max_batch, self._queue_rows, self._batch_seconds = max_batch, queue_rows, batch_seconds
        self._observe = observe
        self._queue: deque[Work] = deque()
        self._link: Link | None = None
        self._running: list[Work] = []
        self._pump_due = False
        self._refusal: str | None = None
        self._seconds_per_row = 0.0
        self._idle = asyncio.Event()
        self._idle.set()
        self.waiting_rows = 0

    def submit(self, arrays: Sequence[Array]) -> list[Work]:
        """Queue a request, cut into batches where it is longer than one.

        Args:
            arrays: inputs [rows, …] in the signature's order.

        Raises:
            BodyTooLarge: it could never fit the queue.
            Saturated: it does not fit now.
            Unavailable: this version takes no requests.
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
            works = [Work(arrays)]
        else:
            starts = range(0, rows, self._max_batch)
            works = [Work([array[start : start + self._max_batch] for array in arrays]) for start in starts]
        self._queue.extend(works)
        self.waiting_rows += rows
        self._idle.clear()
        self._pump_soon()
        return works

    def abandon(self, works: Sequence[Work], error: ServingError) -> None:
        """Take works out of the queue (or forget their running batch) and fail them with `error`."""
        for work in works:
            if work.future.done():
                continue
            _fail(work, error)
            if work not in self._running:
                self._queue.remove(work)
                self.waiting_rows -= work.rows
        self._note_idle()

    def attach(self, link: Link) -> None:
        """Take requests again and send them to `link`."""
        self._link, self._refusal = link, None
        self._pump_soon()

    def detach(self) -> None:
        """Hold requests until the next child is attached."""
        self._link = None

    def refuse(self, reason: str) -> None:
        """Fail what waits and every new request, until a child is attached again."""
        self._link, self._refusal = None, reason
        self.abandon(list(self._queue), Unavailable(reason, retry_after=1))

    async def drained(self, seconds: float) -> bool:
        """Wait until nothing waits or runs, at most `seconds`; tell whether that came."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    def _pump_soon(self) -> None:
        # not at once: requests that arrived in the same turn of the loop shall share the batch
        if not self._pump_due:
            self._pump_due = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._pump_due = False
        if self._running or self._link is None or not self._queue:
            return
        self._running = works = self._collect()
        link, began = self._link, time.monotonic()
        watchdog = asyncio.get_running_loop().call_later(self._batch_seconds, link.kill)
        answer = link.predict(concatenated([work.arrays for work in works]))

        def done(answer: asyncio.Future[Frame]) -> None:
            watchdog.cancel()
            self._finish(works, answer, began)

        answer.add_done_callback(done)

    def _collect(self) -> list[Work]:
        first = self._queue.popleft()
        works, rows = [first], first.rows
        while self._queue:
            following = self._queue[0]
            if rows + following.rows > self._max_batch or following.shapes != first.shapes:
                break
            works.append(self._queue.popleft())
            rows += following.rows
        self.waiting_rows -= rows
        return works

    def _finish(self, works: list[Work], answer: asyncio.Future[Frame], began: float) -> None:
        self._running = []
        error = answer.exception()
        if error is None:
            self._deliver(works, answer.result().tensors, began)
        elif isinstance(error, ChildGone):
            self._try_again(works)
        else:
            text = str(error) if isinstance(error, ChildFailed) else f"{type(error).__name__}: {error}"
            for work in works:
                _fail(work, BadRequest(text))
        self._note_idle()
        self._pump()

    def _deliver(self, works: list[Work], outputs: Outputs, began: float) -> None:
        start = 0
        for work in works:
            if not work.future.done():
                work.future.set_result([output[start : start + work.rows] for output in outputs])
            start += work.rows
        ran = time.monotonic() - began
        self._seconds_per_row = 0.8 * self._seconds_per_row + 0.2 * ran / start
        self._observe(start, began - works[0].queued_at, ran)

    def _try_again(self, works: list[Work]) -> None:
        self._link = None  # whoever restarts the child attaches the next one
        for work in reversed(works):
            work.tries += 1
            if work.tries >= _TRIES or self._refusal is not None:
                _fail(work, Unavailable("The model's process ended while it answered", retry_after=1))
            elif not work.future.done():
                self._queue.appendleft(work)
                self.waiting_rows += work.rows

    def _note_idle(self) -> None:
        if not self._queue and not self._running:
            self._idle.set()


def _fail(work: Work, error: ServingError) -> None:
    if not work.future.done():
        work.future.set_exception(error)
        work.future.exception()  # of a request cut in several, only the first failure is awaited
