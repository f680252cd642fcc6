"""Answers predict requests without ASGI: by one callback for each step, without a task.

Only requests that need nothing unusual are accepted. For all others, `ServingApp` does the same by
coroutines, which run several times as much code.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from jobs.contracts.signature import Signature
from jobs.contracts.traffic import NO_VERSION
from workers.serving.app import Authenticator, error_response, with_version_headers
from workers.serving.asgi import JSON, Request, Response
from workers.serving.bodies.codec import SMALL_BYTES, BodyCodec
from workers.serving.counting import RequestCounter
from workers.serving.errors import ClientGone, DeadlineExceeded, ServingError
from workers.serving.hosts import check_host
from workers.serving.protocols import tfs_paths
from workers.serving.protocols.table_rows import is_quick
from workers.serving.protocols.target import Target
from workers.serving.protocols.tfs_predict import encode_predict, parse_predict
from workers.serving.releases.catalog import Catalog
from workers.serving.releases.endpoint import PickedVersion
from workers.serving.settings import Limits
from workers.serving.versions.batcher import Outputs, WorkItem

logger = logging.getLogger("trainyard.serving")

# These change how a request is read, or how long it may take.
_UNUSUAL = {
    *(b"content-encoding", b"expect", b"transfer-encoding", b"upgrade"),
    b"x-request-timeout-ms",
}


class Caller(NamedTuple):
    """The head of a predict request, and its model."""

    request: Request
    target: Target


class DirectPredictions:
    """Starts the answers to predict requests.

    Attributes:
        body_bytes: larger bodies are not accepted.
    """

    def __init__(
        self,
        catalog: Catalog,
        counter: RequestCounter,
        limits: Limits,
        authenticator: Authenticator | None,
        bodies: BodyCodec,
        hosts: tuple[str, ...] | None,
    ) -> None:
        self.catalog, self.counter, self.bodies = catalog, counter, bodies
        self.seconds = limits.request_seconds
        self.body_bytes = min(limits.body_bytes, SMALL_BYTES)
        self._authenticator, self._hosts = authenticator, hosts

    def caller(self, request: Request) -> Caller | None:
        """Return the caller of a request that was parsed; None if others like it are not accepted."""
        if any(name in _UNUSUAL for name, _ in request.headers):
            return None
        try:
            if self._hosts is not None:
                check_host(request, self._hosts)
            verb, target = tfs_paths.route(request.method, request.path)
        except ServingError:
            return None
        # A label is sent back in a header.
        is_plain = target.label is None or (target.label.isascii() and target.label.isprintable())
        return Caller(request, target) if verb == "predict" and is_plain else None

    def accepts(self, caller: Caller, body: bytes) -> bool:
        """Return whether it is known that the caller may ask now, and the body is read quickly."""
        is_known = self._authenticator is None or self._authenticator.is_known(
            caller.request, caller.target.model
        )
        return is_known and is_quick(body, self.catalog.columns_size(caller.target.model))


class DirectPrediction:
    """One request, from its body to its response. It receives the outcome of the batch."""

    __slots__ = (
        *("_arrived", "_encoding", "_finished", "_is_done", "_item", "_picked"),
        *("_predictions", "_rows", "_signature", "_target", "_timer"),
    )

    def __init__(
        self, predictions: DirectPredictions, target: Target, finished: Callable[[Response], None]
    ) -> None:
        """Create it; `finished` is called once with the response."""
        self._predictions, self._target, self._finished = predictions, target, finished
        self._arrived = time.monotonic()
        self._is_done = self._rows = False
        self._picked: PickedVersion | None = None
        self._signature: Signature
        self._item: WorkItem | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._encoding: asyncio.Task[None] | None = None

    def begin(self, body: bytes) -> None:
        """Parse the body and queue the request."""
        self._predictions.bodies.open_requests += 1
        self._attempt(lambda: self._queue(body))

    def _queue(self, body: bytes) -> None:
        predictions = self._predictions
        self._picked = picked = predictions.catalog.pick(self._target)
        self._signature = picked.version.signature_now()
        table = picked.version.table
        call = parse_predict(body, self._signature, table and table.pipeline)
        self._rows = call.rows
        self._item = picked.version.submit(call.arrays, self)
        self._timer = asyncio.get_running_loop().call_later(predictions.seconds, self._expire)

    def client_left(self) -> None:
        """Drop the request: the client reads no response."""
        self._cancel(ClientGone("the client disconnected"))

    def done(self) -> bool:
        """Return whether the outcome is known."""
        return self._is_done

    def set_result(self, outputs: Outputs) -> None:
        """Answer with the outputs."""
        self._is_done = True
        if self._picked is not None and self._picked.version.waiting_rows:
            # Later: the next batch is sent first.
            asyncio.get_running_loop().call_soon(self._encode, outputs)
        else:
            self._encode(outputs)

    def set_exception(self, error: ServingError) -> None:
        """Answer with an error."""
        self._is_done = True
        self._fail(error)

    def _expire(self) -> None:
        self._cancel(DeadlineExceeded("Deadline exceeded"))

    def _cancel(self, error: ServingError) -> None:
        if self._picked is not None and self._item is not None:
            self._picked.version.cancel(self._item, error)

    def _encode(self, outputs: Outputs) -> None:
        if not self._predictions.bodies.is_small_output(outputs):
            self._encoding = asyncio.create_task(self._encode_large(outputs))
            return
        body = self._attempt(lambda: encode_predict(outputs, self._signature, rows=self._rows))
        if body is not None:
            self._succeed(body)

    async def _encode_large(self, outputs: Outputs) -> None:
        deadline = self._arrived + self._predictions.seconds
        encode = self._predictions.bodies.encode_predict
        try:
            body = await encode(outputs, self._signature, rows=self._rows, deadline=deadline)
        except ServingError as error:
            self._fail(error)
        except Exception:
            logger.exception("a response could not be encoded")
            self._fail(ServingError("Internal error"))
        else:
            self._succeed(body)

    def _attempt[Result](self, step: Callable[[], Result]) -> Result | None:
        """Return the result of a step. If it fails, the request is answered with an error."""
        try:
            return step()
        except ServingError as error:
            self._fail(error)
        except Exception:
            logger.exception("a prediction failed")
            self._fail(ServingError("Internal error"))
        return None

    def _succeed(self, body: bytes | memoryview) -> None:
        assert self._picked is not None  # noqa: S101
        self._finish(Response(body, headers=with_version_headers(self._picked, JSON)))

    def _fail(self, error: ServingError) -> None:
        self._finish(error_response(error))

    def _finish(self, response: Response) -> None:
        predictions = self._predictions
        predictions.bodies.open_requests -= 1
        if self._timer is not None:
            self._timer.cancel()
        version = NO_VERSION if self._picked is None else self._picked.version.approved.number
        seconds = time.monotonic() - self._arrived
        # Later: the request is answered first.
        asyncio.get_running_loop().call_soon(
            predictions.counter.count, self._target.model, version, "predict", response.status, seconds
        )
        self._finished(response)
