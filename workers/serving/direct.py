"""Answers requests for predictions without ASGI: by one callback for each step, without a task.

Only requests that need nothing unusual are accepted. For all others, `ServingApp` does the same by
coroutines, which run several times as much code.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from jobs.messages.traffic import NO_VERSION
from jobs.spec.signature import Signature
from workers.model_process.errors import ClientGone, DeadlineExceeded, ServingError
from workers.serving.app import answering, name_version
from workers.serving.asgi import Request
from workers.serving.bodies.codec import SMALL_BYTES
from workers.serving.bodies.memory import FREE_BYTES
from workers.serving.hosts import check_host
from workers.serving.protocols.protocol import (
    Call,
    Prediction,
    PredictionRoute,
    Protocol,
    protocol_of,
)
from workers.serving.protocols.quick_bodies import is_quick
from workers.serving.protocols.target import Target
from workers.serving.releases.endpoint import PickedVersion
from workers.serving.request_context import RequestContext
from workers.serving.response import Response, error_response
from workers.serving.versions.batcher import Outputs, WorkItem

logger = logging.getLogger("trainyard.serving")

# These change how a request is read, or how long it may take.
_UNUSUAL = {
    *(b"content-encoding", b"expect", b"transfer-encoding", b"upgrade", b"x-request-timeout-ms"),
    # Each request has another one, which is sent back.
    b"x-request-id",
}


class Caller(NamedTuple):
    """The head of a prediction request, and its meaning.

    Attributes:
        protocol: the one to which its path belongs.
        prediction: the operation.
        target: the model.
        header: the header that the operation needs, if it was sent.
        json_bytes: how many bytes of JSON precede raw tensors, if the header gives them.
        body_bytes: larger bodies are not accepted.
    """

    request: Request
    protocol: Protocol
    prediction: Prediction[Any]
    target: Target
    header: str | None
    json_bytes: int | None
    body_bytes: int


class DirectPredictions:
    """Starts the answers to requests for predictions.

    Args:
        context: the parts that all answers share.
    """

    def __init__(self, context: RequestContext) -> None:
        self.catalog, self.counter, self.bodies = context.catalog, context.counter, context.bodies
        self.seconds = context.limits.request_seconds
        self._body_bytes = context.limits.body_bytes
        self._authenticator, self._hosts = context.authenticator, context.hosts
        self._protocols = context.protocols

    def caller(self, request: Request) -> Caller | None:
        """Return a parsed request's caller; None if others like it are not accepted."""
        protocol = protocol_of(request.path, self._protocols)
        if protocol is None or any(name in _UNUSUAL for name, _ in request.headers):
            return None
        try:
            if self._hosts is not None:
                check_host(request, self._hosts)
            route = protocol.route(request.method, request.path, request.query)
        except ServingError:
            return None
        if not isinstance(route, PredictionRoute) or not route.prediction.is_direct:
            return None
        label = route.target.label
        # A label is sent back in a header.
        if label is not None and not (label.isascii() and label.isprintable()):
            return None
        return self._caller_of(request, protocol, route)

    def _caller_of(self, request: Request, protocol: Protocol, route: PredictionRoute) -> Caller | None:
        prediction, target = route
        header = None if prediction.header is None else request.header(prediction.header)
        json_bytes, largest = None, SMALL_BYTES
        if header is not None and prediction.json_bytes is not None:
            json_bytes = prediction.json_bytes(header)
            if json_bytes is None or json_bytes > SMALL_BYTES:
                return None
            # All that follows the JSON is raw tensors, which are not parsed.
            largest = FREE_BYTES
        body_bytes = min(self._body_bytes, largest)
        return Caller(request, protocol, prediction, target, header, json_bytes, body_bytes)

    def is_known(self, caller: Caller) -> bool:
        """Return whether it is known that the caller may ask now."""
        authenticator = self._authenticator
        return authenticator is None or authenticator.is_known(caller.request, caller.target.model)

    def is_quick(self, caller: Caller, body: bytes) -> bool:
        """Return whether the body is read quickly."""
        raw = 0 if caller.json_bytes is None else max(0, len(body) - caller.json_bytes)
        return is_quick(body, self.catalog.columns_size(caller.target.model), raw=raw)


class DirectPrediction:
    """One request, from its body to its response. It receives the batch's outcome."""

    __slots__ = (
        *("_arrived", "_call", "_caller", "_encoding", "_finished", "_is_done", "_item", "_picked"),
        *("_predictions", "_signature", "_timer"),
    )

    def __init__(
        self,
        predictions: DirectPredictions,
        caller: Caller,
        finished: Callable[[Response], None],
        arrived: float,
    ) -> None:
        """Create it.

        Args:
            predictions: starts it.
            caller: its head.
            finished: called once with the response.
            arrived: the monotonic time of its first byte.
        """
        self._predictions, self._caller, self._finished = predictions, caller, finished
        self._arrived = arrived
        self._is_done = False
        self._picked: PickedVersion | None = None
        # Known once the request is queued.
        self._signature: Signature
        self._call: Call
        self._item: WorkItem | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._encoding: asyncio.Task[Response] | None = None

    def begin(self, body: bytes) -> None:
        """Parse the body and queue the request."""
        self._predictions.bodies.open_requests += 1
        self._run_step(self._queue, body)

    def _queue(self, body: bytes) -> None:
        predictions, caller = self._predictions, self._caller
        self._picked = picked = predictions.catalog.pick(caller.target)
        self._signature = signature = picked.version.signature_now()
        pipeline = picked.version.table and picked.version.table.pipeline
        self._call = caller.prediction.parse(body, caller.header, signature, pipeline)
        self._item = picked.version.submit(self._call.arrays, self)
        left = self._arrived + predictions.seconds - time.monotonic()
        self._timer = asyncio.get_running_loop().call_later(max(0.0, left), self._expire)

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
        assert self._picked is not None  # noqa: S101
        call, caller, bodies, picked = self._call, self._caller, self._predictions.bodies, self._picked
        prediction, approved = caller.prediction, picked.version.approved
        version = answering(caller.target.model, approved, self._signature)
        if bodies.encodes_at_once(prediction, call, outputs):
            response = self._run_step(prediction.encode, call, outputs, version)
            if response is not None:
                self._finish(name_version(response, picked))
            return
        deadline = self._arrived + self._predictions.seconds
        encoding = bodies.encode(prediction, call, outputs, version, deadline)
        self._encoding = asyncio.create_task(encoding)
        self._encoding.add_done_callback(self._send_encoded)

    def _send_encoded(self, encoding: asyncio.Task[Response]) -> None:
        """Answer with the response that a body worker has encoded."""
        # The event loop cancels it when it ends.
        if encoding.cancelled():
            return
        response = self._run_step(encoding.result)
        if response is not None and self._picked is not None:
            self._finish(name_version(response, self._picked))

    def _run_step[*Arguments, Result](
        self, step: Callable[[*Arguments], Result], *arguments: *Arguments
    ) -> Result | None:
        """Return a step's result. If it fails, the request is answered with an error."""
        try:
            return step(*arguments)
        except ServingError as error:
            self._fail(error)
        # Whatever fails, the client receives an answer, and the next request is not affected.
        except Exception:
            logger.exception("a prediction failed")
            self._fail(ServingError("Internal error"))
        return None

    def _fail(self, error: ServingError) -> None:
        self._finish(error_response(error, self._caller.protocol.encode_error))

    def _finish(self, response: Response) -> None:
        predictions, caller = self._predictions, self._caller
        predictions.bodies.open_requests -= 1
        if self._timer is not None:
            self._timer.cancel()
        version = NO_VERSION if self._picked is None else self._picked.version.approved.number
        seconds = time.monotonic() - self._arrived
        # Later: the request is answered first.
        model, name = caller.target.model, caller.prediction.api
        asyncio.get_running_loop().call_soon(
            predictions.counter.count, model, version, name, response.status, seconds
        )
        self._finished(response)
