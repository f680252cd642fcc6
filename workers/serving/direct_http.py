"""The HTTP protocol with a short path for predict requests that repeat the head of an earlier one.

Most clients send all requests over one connection, with the same head each time. Such a request is neither
parsed nor handled by ASGI, which takes most of the time of a small prediction.
"""

from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from workers.serving.asgi import JSON, Headers, Request, Response
from workers.serving.direct import Caller, DirectPrediction, DirectPredictions
from workers.serving.http import HttpProtocol
from workers.serving.repeated_heads import RepeatedHead, head_of

_CLOSE = (b"connection", b"close")


class DirectHttpProtocol(HttpProtocol):
    """Answers a repeated predict request directly; leaves all others to its base class."""

    predictions: ClassVar[DirectPredictions | None] = None

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._known: tuple[RepeatedHead, Caller] | None = None
        self._prediction: DirectPrediction | None = None
        # Data that arrived after the request that is being answered directly.
        self._ahead = b""
        self._is_shutting_down = False

    def data_received(self, data: bytes) -> None:
        """Answer a repeated request, or feed the parser (asyncio callback)."""
        if self._prediction is not None:
            self._ahead += data
            self.flow.pause_reading()
        elif not self._is_idle():
            super().data_received(data)
        elif (caller_and_body := self._repeated(data)) is not None:
            self._predict(*caller_and_body)
        else:
            super().data_received(data)
            self._known = self._learned(data)

    def _is_idle(self) -> bool:
        """Return whether the next byte begins a request, which is answered at once."""
        return (
            not self._is_incomplete
            and not self._head_bytes
            and (self.cycle is None or self.cycle.response_complete)
            and not self.flow.write_paused
        )

    def _repeated(self, data: bytes) -> tuple[Caller, bytes] | None:
        """Return the caller and the body of a request with the known head; None for any other."""
        if self._known is None or self.predictions is None:
            return None
        head, caller = self._known
        body = head.body_of(data)
        if body is None or len(body) > self.predictions.body_bytes:
            return None
        if not self.predictions.accepts(caller, body):
            return None
        return caller, body

    def _learned(self, data: bytes) -> tuple[RepeatedHead, Caller] | None:
        """Return the head of the request that was just parsed, if others like it can be answered directly."""
        if self.predictions is None or self._is_incomplete or not data.startswith(b"POST "):
            return None
        is_kept = self.cycle is not None and self.cycle.keep_alive and not self.transport.is_closing()
        if not is_kept or self.scope["http_version"] != "1.1" or self.access_log:
            return None
        if (head := head_of(data)) is None:
            return None
        scope: Any = self.scope
        receive: Any = self.cycle.receive
        caller = self.predictions.caller(Request(scope, receive))
        return None if caller is None else (head, caller)

    def _predict(self, caller: Caller, body: bytes) -> None:
        assert self.predictions is not None  # noqa: S101
        self._unset_keepalive_if_required()
        self.admission.mark_busy(self)
        self._prediction = DirectPrediction(self.predictions, caller.target, self._answer)
        self._prediction.begin(body)

    def _answer(self, response: Response) -> None:
        """Send the response, and read the data that arrived meanwhile."""
        self._prediction = None
        ahead, self._ahead = self._ahead, b""
        if self.transport.is_closing():
            return
        headers = [*self.server_state.default_headers, *(response.headers or JSON)]
        if self._is_shutting_down and _CLOSE not in headers:
            headers.append(_CLOSE)
        joining: Any = self.transport
        joining.write_at_once(_encoded(response, headers))
        if _CLOSE in headers:
            self.transport.close()
        self.on_response_complete()
        if ahead and not self.transport.is_closing():
            self.data_received(ahead)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the request that is being answered (asyncio callback)."""
        if self._prediction is not None:
            self._prediction.client_left()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close the connection, after the response if there is one (called by uvicorn)."""
        if self._prediction is not None:
            self._is_shutting_down = True
        else:
            super().shutdown()


def _encoded(response: Response, headers: Headers) -> bytes:
    lines = [b"%b: %b\r\n" % header for header in headers]
    length = b"content-length: %d\r\n\r\n" % len(response.body)
    return b"".join([STATUS_LINE[response.status], *lines, length, response.body])
