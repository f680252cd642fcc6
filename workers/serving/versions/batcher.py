"""Batches one version's requests: dispatches at once to an idle child, collects while it is busy."""

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy.typing as npt

from workers.model_process.errors import (
    LACKS_MEMORY,
    BadRequest,
    BodyTooLarge,
    Saturated,
    ServingError,
    Unavailable,
)
from workers.model_process.frames import Frame
from workers.serving.versions.child_process import Answered, ChildExited, ChildFailed, concatenated

logger = logging.getLogger("trainyard.serving")

Array = npt.NDArray[Any]
Outputs = list[Array]

# A request whose child dies is tried once more, alone: another one of its batch may have been the cause.
_MAX_TRIES = 2
# How often the time of a running batch is checked. Only times in which this process runs are counted, so a
# server that was suspended itself does not end its children.
_TICK_SECONDS = 0.5


class Child(Protocol):
    """The model child's interface that the batcher uses."""

    @property
    def is_compiling(self) -> bool:
        """Whether it compiles a program for the running batch, or runs one for the first time."""

    def predict(self, tensors: Sequence[Array], answered: Answered) -> None:
        """Send one batch; `answered` gets its outputs."""

    def kill(self) -> None:
        """Kill the child."""


class Answer(Protocol):
    """Receives one request's outcome: a future, or an object that acts on it at once."""

    def done(self) -> bool:
        """Return whether it has the outcome."""

    def set_result(self, result: Outputs, /) -> None:
        """Receive the outputs."""

    def set_exception(self, exception: ServingError, /) -> None:
        """Receive the reason why there are no outputs."""


class BatchLimits(NamedTuple):
    """Limits for one queue.

    Attributes:
        max_batch: maximum rows in one model call.
        queue_rows: maximum rows waiting; further requests are refused.
        batch_seconds: a batch may take this long, or three times as long as the slowest one so far.
        compile_seconds: a batch whose shapes are new may take this long.
        answer_bytes: maximum bytes in one request's outputs.
    """

    max_batch: int
    queue_rows: int
    batch_seconds: float = 2.0
    compile_seconds: float = 60.0
    answer_bytes: int = 512 * 2**20

    @property
    def share(self) -> int:
        """The rows that one request counts for at most."""
        return max(1, self.queue_rows // 4)


class WorkItem:
    """One request. It is computed in slices, each at most one batch, in order.

    Attributes:
        arrays: the inputs, (rows, …) each, in the signature's order.
        rows: how many rows they have.
        shapes: each input's shape without the rows.
        answer: receives the outcome.
        queued_at: monotonic time.
        sent: rows that have been sent to the child.
        parts: the outputs of the slices so far.
        output_bytes: their size.
        tries: how often the current slice has been sent without an answer.
        alone: whether it must not share a batch.
    """

    __slots__ = (
        "alone",
        "answer",
        "arrays",
        "output_bytes",
        "parts",
        "queued_at",
        "rows",
        "sent",
        "shapes",
        "tries",
    )

    def __init__(self, arrays: Sequence[Array], answer: Answer) -> None:
        self.arrays = arrays
        self.rows = len(arrays[0])
        self.shapes = [array.shape[1:] for array in arrays]
        self.answer = answer
        self.queued_at = time.monotonic()
        self.sent = 0
        self.parts: list[Outputs] = []
        self.output_bytes = 0
        self.tries = 0
        self.alone = False

    @property
    def waiting(self) -> int:
        """The rows that have not been sent to the child."""
        return self.rows - self.sent

    def receive(self, outputs: Outputs) -> None:
        """Add the next slice's outputs; the last one completes the request."""
        self.tries = 0
        self.parts.append(outputs)
        self.output_bytes += sum(output.nbytes for output in outputs)
        if self.waiting == 0:
            self.answer.set_result(concatenated(self.parts))


class Slice(NamedTuple):
    """The rows of one request that are in the running batch."""

    item: WorkItem
    start: int
    rows: int

    def arrays(self) -> Sequence[Array]:
        """Return the rows for each input."""
        item, start, rows = self
        return item.arrays if rows == item.rows else [array[start : start + rows] for array in item.arrays]


class Batcher:
    """Queues requests and sends them to one child in batches. The queue survives the child's restarts.

    A request that needs several batches goes to the queue's end after each, so others do not wait for
    all of it.
    """

    def __init__(
        self,
        limits: BatchLimits,
        *,
        observe: Callable[[int, float, float], None] = lambda rows, queued, ran: None,  # noqa: ARG005
        answered: Callable[[Sequence[tuple[int, ...]]], None] = lambda sizes: None,  # noqa: ARG005
    ) -> None:
        """Create an empty queue.

        Args:
            limits: for rows, seconds and bytes.
            observe: called for each batch: rows, seconds its oldest item waited, seconds it ran.
            answered: called for each batch that was computed, with the shapes in a row's inputs.
        """
        self._limits, self._observe, self._answered = limits, observe, answered
        self._queue: deque[WorkItem] = deque()
        self._child: Child | None = None
        self._running: list[Slice] = []
        self._watch: asyncio.TimerHandle | None = None
        self._dispatch_due = False
        self._refusal: str | None = None
        self._seconds_per_row = 0.0
        self._slowest = 0.0
        self._idle = asyncio.Event()
        self._idle.set()
        self.waiting_rows = 0

    def submit(self, arrays: Sequence[Array], answer: Answer | None = None) -> WorkItem:
        """Queue a request.

        Args:
            arrays: inputs [rows, …] in the signature's order.
            answer: receives the outcome; by default a new future.

        Raises:
            Saturated: the queue is too full for it now.
            Unavailable: the version accepts no requests.
        """
        item = WorkItem(arrays, answer or asyncio.get_running_loop().create_future())
        if self._refusal is not None:
            raise Unavailable(self._refusal, retry_after=1)
        limits = self._limits
        # The last quarter of the queue is for requests of one batch: a few long ones do not lock them out.
        reserved = limits.share if item.rows > limits.max_batch else 0
        if self.waiting_rows + self._queued_rows(item) > limits.queue_rows - reserved:
            wait = math.ceil(self.waiting_rows * self._seconds_per_row)
            raise Saturated(f"The queue is full: {self.waiting_rows} rows wait", retry_after=max(1, wait))
        self._enqueue(item, self._queue.append)
        self._idle.clear()
        self._dispatch_soon()
        return item

    def cancel(self, item: WorkItem, error: ServingError) -> None:
        """Fail a request with `error` and remove it from the queue. A running batch is not interrupted."""
        if not item.answer.done():
            _fail(item, error)
            self._remove(item)
            self._update_idle()

    def attach(self, child: Child, slowest: float = 0.0) -> None:
        """Accept requests and send them to `child`, whose slowest batch took `slowest` seconds."""
        self._child, self._refusal = child, None
        self._slowest = max(self._slowest, slowest)
        self._dispatch_soon()

    def detach(self) -> None:
        """Keep requests queued until the next child is attached."""
        self._child = None

    def refuse(self, reason: str) -> None:
        """Fail all queued and new requests until a child is attached."""
        self._child, self._refusal = None, reason
        for item in list(self._queue):
            self.cancel(item, Unavailable(reason, retry_after=1))

    async def drained(self, seconds: float) -> bool:
        """Wait until all requests are answered, at most `seconds`; return whether they are."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    def _queued_rows(self, item: WorkItem) -> int:
        # A long request is sent slice by slice, so it does not fill the queue with all of its rows.
        return min(item.waiting, self._limits.share)

    def _enqueue(self, item: WorkItem, add: Callable[[WorkItem], None]) -> None:
        add(item)
        self.waiting_rows += self._queued_rows(item)

    def _remove(self, item: WorkItem) -> None:
        if item in self._queue:
            self._queue.remove(item)
            self.waiting_rows -= self._queued_rows(item)

    def _dispatch_soon(self) -> None:
        # Deferred, so that requests of the same turn of the event loop share a batch.
        if not self._dispatch_due:
            self._dispatch_due = True
            asyncio.get_running_loop().call_soon(self._dispatch)

    def _dispatch(self) -> None:
        self._dispatch_due = False
        if self._running or self._child is None or not self._queue:
            return
        self._running = slices = self._collect()
        child, began = self._child, time.monotonic()
        # A child that hangs does not answer a request to stop. Its death fails the batch and frees the queue.
        self._watch = asyncio.get_running_loop().call_later(
            _TICK_SECONDS, self._check_time, child, _TICK_SECONDS
        )
        self._send(child, slices, lambda outcome: self._finish(slices, outcome, began))

    def _send(self, child: Child, slices: list[Slice], answered: Answered) -> None:
        """Send a batch. One that cannot be sent fails as if the child had refused it."""
        try:
            child.predict(concatenated([taken.arrays() for taken in slices]), answered)
            return
        except MemoryError:
            error = ChildFailed("There is not enough memory for the batch", kind=LACKS_MEMORY)
        except Exception:
            logger.exception("a batch could not be sent")
            error = ChildFailed("Internal error")
        # Later, because it sends the next batch: the calls of many that fail would be nested.
        asyncio.get_running_loop().call_soon(answered, error)

    def _check_time(self, child: Child, ran: float) -> None:
        limit = max(self._limits.batch_seconds, 3 * self._slowest)
        if child.is_compiling:
            limit = max(limit, self._limits.compile_seconds)
        if ran >= limit:
            child.kill()
        else:
            ran += _TICK_SECONDS
            self._watch = asyncio.get_running_loop().call_later(_TICK_SECONDS, self._check_time, child, ran)

    def _collect(self) -> list[Slice]:
        first = self._queue[0]
        slices = [self._take(first)]
        rows = slices[0].rows
        while self._queue and not first.alone:
            following = self._queue[0]
            # Rows of other shapes cannot be in one array. Items are not reordered, so none waits for ever.
            if (
                rows + following.waiting > self._limits.max_batch
                or following.shapes != first.shapes
                or following.alone
            ):
                break
            slices.append(self._take(following))
            rows += slices[-1].rows
        return slices

    def _take(self, item: WorkItem) -> Slice:
        """Take the next rows from the queue's first request."""
        self._queue.popleft()
        self.waiting_rows -= self._queued_rows(item)
        taken = Slice(item, item.sent, min(item.waiting, self._limits.max_batch))
        item.sent += taken.rows
        if item.waiting:
            self._enqueue(item, self._queue.append)
        return taken

    def _finish(self, slices: list[Slice], outcome: Frame | Exception, began: float) -> None:
        self._running = []
        if self._watch is not None:
            self._watch.cancel()
        match outcome:
            case Frame():
                self._deliver(slices, outcome)
                # Later: the requests are answered first.
                ran = time.monotonic() - began
                asyncio.get_running_loop().call_soon(self._record, slices, outcome, began, ran)
            case ChildExited():
                self._child = None  # the version attaches the next child
                self._retry(slices, Unavailable("The model's process ended while it answered", retry_after=1))
            case ChildFailed():
                self._refused(slices, outcome)
            case _:
                self._refused(slices, ChildFailed("Internal error"))
        self._update_idle()
        self._dispatch()

    def _refused(self, slices: list[Slice], error: ChildFailed) -> None:
        if error.kind == LACKS_MEMORY and len(slices) > 1:
            # Each request may fit without the others.
            self._retry(slices, Unavailable(str(error), retry_after=1))
            return
        for item, _, _ in slices:
            if not item.answer.done():
                _fail(item, _error_of(error))
                self._remove(item)

    def _deliver(self, slices: list[Slice], frame: Frame) -> None:
        at = 0
        for item, _, rows in slices:
            # An item may have been cancelled while its batch ran.
            if not item.answer.done():
                self._give(item, [output[at : at + rows] for output in frame.tensors])
            at += rows

    def _give(self, item: WorkItem, outputs: Outputs) -> None:
        """Give a request the outputs for its slice. One that cannot take them fails alone.

        Nothing is raised: the caller is the connection to the child, which would be closed, and the others of
        the batch would get no answer.
        """
        limit = self._limits.answer_bytes
        try:
            item.receive(outputs)
        except MemoryError:
            self.cancel(item, Unavailable("There is not enough memory for the answer", retry_after=1))
        except Exception:
            logger.exception("the outputs of a request could not be joined")
            self.cancel(item, ServingError("Internal error"))
        if item.output_bytes > limit:
            self.cancel(item, BodyTooLarge(f"The answer has more than {limit} bytes"))

    def _record(self, slices: list[Slice], frame: Frame, began: float, ran: float) -> None:
        """Record a batch that took `ran` seconds."""
        rows = sum(taken.rows for taken in slices)
        # The time of a compilation is no measure of the batches that follow.
        if not frame.header.get("compiled"):
            self._slowest = max(self._slowest, ran)
        # A moving average, from which a refused client learns when to try again.
        self._seconds_per_row = 0.8 * self._seconds_per_row + 0.2 * ran / rows
        self._answered(slices[0].item.shapes)
        self._observe(rows, began - slices[0].item.queued_at, ran)

    def _retry(self, slices: list[Slice], error: ServingError) -> None:
        """Queue a batch's requests again, each alone; fail those that were tried before."""
        # In reverse, because each is put at the front: the queue keeps its order.
        for item, start, _ in reversed(slices):
            self._remove(item)
            item.sent = start
            item.tries += 1
            item.alone = item.alone or len(slices) > 1
            if item.tries >= _MAX_TRIES or self._refusal is not None:
                _fail(item, error)
            elif not item.answer.done():
                self._enqueue(item, self._queue.appendleft)

    def _update_idle(self) -> None:
        if not self._queue and not self._running:
            self._idle.set()


def _error_of(error: ChildFailed) -> ServingError:
    match error.kind:
        case "input":
            return BadRequest(str(error))
        case kind if kind == LACKS_MEMORY:
            return Unavailable(str(error), retry_after=1)
        case _:
            return ServingError(str(error))


def _fail(item: WorkItem, error: ServingError) -> None:
    if not item.answer.done():
        item.answer.set_exception(error)
        # Marks the exception as retrieved: if the client has left, nothing awaits it, and asyncio logs it.
        if isinstance(item.answer, asyncio.Future):
            item.answer.exception()
