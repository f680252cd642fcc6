"""Answers requests for predictions without ASGI: by one callback for each step, without a task.

Only requests that need nothing unusual are accepted. For all others, `ServingApp` does the same by
coroutines, which run several times as much code.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Literal, NamedTuple

from jobs.messages.traffic import NO_VERSION
from jobs.spec.signature import Signature
from workers.model_process.errors import ClientGone, DeadlineExceeded, ServingError
from workers.serving.app import (
    INFER_HEADER_LENGTH,
    Authenticator,
    infer_response,
    predict_response,
)
from workers.serving.asgi import Request
from workers.serving.bodies.codec import SMALL_BYTES, BodyCodec
from workers.serving.bodies.memory import FREE_BYTES
from workers.serving.counting import RequestCounter
from workers.serving.hosts import check_host
from workers.serving.protocols import oip_infer, tfs_paths
from workers.serving.protocols.oip_infer import InferCall, encode_infer, parse_infer
from workers.serving.protocols.table_rows import is_quick
from workers.serving.protocols.target import Target
from workers.serving.protocols.tfs_predict import PredictCall, encode_predict, parse_predict
from workers.serving.releases.catalog import Catalog
from workers.serving.releases.endpoint import PickedVersion
from workers.serving.response import Response, error_response
from workers.serving.settings import Limits
from workers.serving.versions.batcher import Outputs, WorkItem

logger = logging.getLogger("trainyard.serving")

# These change how a request is read, or how long it may take.
_UNUSUAL = {
    *(b"content-encoding", b"expect", b"transfer-encoding", b"upgrade"),
    b"x-request-timeout-ms",
}


class Caller(NamedTuple):
    """The head of a request for predictions, and its meaning.

    Attributes:
        api: the operation.
        target: the model.
        header_length: the header of the bytes of JSON before raw tensors, if it was sent.
        body_bytes: larger bodies are not accepted.
    """

    request: Request
    api: Literal["predict", "infer"]
    target: Target
    header_length: str | None
    body_bytes: int


class DirectPredictions:
    """Starts the answers to requests for predictions."""

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
        self._body_bytes = limits.body_bytes
        self._authenticator, self._hosts = authenticator, hosts

    def caller(self, request: Request) -> Caller | None:
        """Return the caller of a request that was parsed; None if others like it are not accepted."""
        if any(name in _UNUSUAL for name, _ in request.headers):
            return None
        try:
            if self._hosts is not None:
                check_host(request, self._hosts)
            if request.path.startswith("/v2/"):
                return self._caller_of_infer(request)
            verb, target = tfs_paths.route(request.method, request.path)
        except ServingError:
            return None
        # A label is sent back in a header.
        is_plain = target.label is None or (target.label.isascii() and target.label.isprintable())
        if verb != "predict" or not is_plain:
            return None
        return Caller(request, verb, target, None, min(self._body_bytes, SMALL_BYTES))

    def _caller_of_infer(self, request: Request) -> Caller | None:
        route = oip_infer.model_route(request.path)
        if request.method != "POST" or route is None or route.verb != "infer":
            return None
        length, largest = request.header(INFER_HEADER_LENGTH), SMALL_BYTES
        if length is not None:
            # All that follows the JSON is raw tensors, which are not parsed.
            if not (length.isdecimal() and len(length) < 6 and int(length) <= SMALL_BYTES):
                return None
            largest = FREE_BYTES
        return Caller(request, "infer", route.target, length, min(self._body_bytes, largest))

    def is_known(self, caller: Caller) -> bool:
        """Return whether it is known that the caller may ask now."""
        authenticator = self._authenticator
        return authenticator is None or authenticator.is_known(caller.request, caller.target.model)

    def is_quick(self, caller: Caller, body: bytes) -> bool:
        """Return whether the body is read quickly."""
        raw = 0 if caller.header_length is None else max(0, len(body) - int(caller.header_length))
        return is_quick(body, self.catalog.columns_size(caller.target.model), raw=raw)


class _Answer(NamedTuple):
    """The outputs for a request, and what their encoding needs."""

    picked: PickedVersion
    model: str
    signature: Signature
    call: PredictCall | InferCall
    outputs: Outputs

    def as_json(self) -> Outputs:
        """Return the outputs that are written as JSON."""
        if isinstance(self.call, PredictCall):
            return self.outputs
        return [self.outputs[position] for position, binary in self.call.outputs if not binary]

    def encode(self) -> Response:
        picked, model, signature, call, outputs = self
        if isinstance(call, PredictCall):
            return predict_response(picked, encode_predict(outputs, signature, rows=call.rows))
        number = picked.version.approved.number
        return infer_response(picked, encode_infer(call, outputs, model, number, signature))

    async def encode_by(self, bodies: BodyCodec, deadline: float) -> Response:
        """Return the response, which a body worker encodes."""
        picked, model, signature, call, outputs = self
        if isinstance(call, PredictCall):
            body = await bodies.encode_predict(outputs, signature, rows=call.rows, deadline=deadline)
            return predict_response(picked, body)
        number = picked.version.approved.number
        encoded = await bodies.encode_infer(call, outputs, model, number, signature, deadline)
        return infer_response(picked, encoded)


class DirectPrediction:
    """One request, from its body to its response. It receives the outcome of the batch."""

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
            arrived: the time of its first byte, of the monotonic clock.
        """
        self._predictions, self._caller, self._finished = predictions, caller, finished
        self._arrived = arrived
        self._is_done = False
        self._picked: PickedVersion | None = None
        # Known once the request is queued.
        self._signature: Signature
        self._call: PredictCall | InferCall
        self._item: WorkItem | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._encoding: asyncio.Task[None] | None = None

    def begin(self, body: bytes) -> None:
        """Parse the body and queue the request."""
        self._predictions.bodies.open_requests += 1
        self._attempt(lambda: self._queue(body))

    def _queue(self, body: bytes) -> None:
        predictions, caller = self._predictions, self._caller
        self._picked = picked = predictions.catalog.pick(caller.target)
        self._signature = signature = picked.version.signature_now()
        pipeline = picked.version.table and picked.version.table.pipeline
        if caller.api == "infer":
            self._call = parse_infer(body, caller.header_length, signature, pipeline)
        else:
            self._call = parse_predict(body, signature, pipeline)
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
        answer = _Answer(self._picked, self._caller.target.model, self._signature, self._call, outputs)
        if not self._predictions.bodies.is_small_output(answer.as_json()):
            self._encoding = asyncio.create_task(self._encode_large(answer))
            return
        response = self._attempt(answer.encode)
        if response is not None:
            self._finish(response)

    async def _encode_large(self, answer: _Answer) -> None:
        deadline = self._arrived + self._predictions.seconds
        try:
            response = await answer.encode_by(self._predictions.bodies, deadline)
        except ServingError as error:
            self._fail(error)
        except Exception:
            logger.exception("a response could not be encoded")
            self._fail(ServingError("Internal error"))
        else:
            self._finish(response)

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

    def _fail(self, error: ServingError) -> None:
        self._finish(error_response(error))

    def _finish(self, response: Response) -> None:
        predictions, caller = self._predictions, self._caller
        predictions.bodies.open_requests -= 1
        if self._timer is not None:
            self._timer.cancel()
        version = NO_VERSION if self._picked is None else self._picked.version.approved.number
        seconds = time.monotonic() - self._arrived
        # Later: the request is answered first.
        asyncio.get_running_loop().call_soon(
            predictions.counter.count, caller.target.model, version, caller.api, response.status, seconds
        )
        self._finished(response)
