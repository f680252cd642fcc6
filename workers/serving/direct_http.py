"""The HTTP protocol with a short path for predictions whose request repeats the head of an earlier one.

Most clients send all requests over one connection, with the same head each time. Such a request is neither
parsed nor handled by ASGI, which takes most of the time of a small prediction.
"""

import time
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from workers.serving.asgi import Request
from workers.serving.direct import Caller, DirectPrediction, DirectPredictions
from workers.serving.http import HttpProtocol
from workers.serving.repeated_heads import BodyPlace, RepeatedHead, head_of
from workers.serving.request_log import RequestLog
from workers.serving.response import JSON, Headers, Response

_CLOSE = (b"connection", b"close")


class DirectHttpProtocol(HttpProtocol):
    """Answers a repeated request for a prediction directly; leaves all others to its base class."""

    predictions: ClassVar[DirectPredictions | None] = None
    request_log: ClassVar[RequestLog | None] = None

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        # The head of the last request that was parsed, if others like it can be answered directly.
        self._known: tuple[RepeatedHead, Caller] | None = None
        self._prediction: DirectPrediction | None = None
        # A request with the known head whose body has not arrived completely: its head and the parts of its
        # body, the number of bytes that have not arrived, and the time of the first one.
        self._parts: list[bytes] = []
        self._missing, self._began = 0, 0.0
        # Data that arrived after the request that is being answered directly.
        self._early_data = b""
        self._is_shutting_down = False

    def data_received(self, data: bytes) -> None:
        """Answer a repeated request, or feed the parser (asyncio callback)."""
        if self._prediction is not None:
            self._early_data += data
            self.flow.pause_reading()
        elif self._parts:
            self._continue_body(data)
        elif not self._is_idle():
            super().data_received(data)
        elif (place := self._place_of_body(data)) is None:
            self._parse_first(data)
        else:
            self._begin_body(data, place)

    def _is_idle(self) -> bool:
        """Return whether the next byte begins a request, which is answered at once."""
        return (
            not self._is_incomplete
            and not self._head_bytes
            and (self.cycle is None or self.cycle.response_complete)
            and not self.flow.write_paused
        )

    def _parse_first(self, data: bytes) -> None:
        """Feed the first part of a request to the parser, and learn its head."""
        super().data_received(data)
        self._known = self._repeatable_head(data)

    def _place_of_body(self, data: bytes) -> BodyPlace | None:
        """Return where the body is in a request with the known head; None for any other."""
        if self._known is None or self.predictions is None:
            return None
        head, caller = self._known
        place = head.place_of_body(data)
        if place is None or place.end < len(data) or place.end - place.start > caller.body_bytes:
            return None
        return place if self.predictions.is_known(caller) else None

    def _begin_body(self, data: bytes, place: BodyPlace) -> None:
        self._began = time.monotonic()
        self._unset_keepalive_if_required()
        # Otherwise the connection may be closed to make room, as one that waits for its next request.
        self.admission.mark_busy(self)
        head, body = data[: place.start], data[place.start :]
        if len(data) < place.end:
            self._parts, self._missing = [head, body], place.end - len(data)
        else:
            self._answer_request(head, body)

    def _continue_body(self, data: bytes) -> None:
        self._parts.append(data)
        self._missing -= len(data)
        if self._missing < 0:
            self._leave_to_parser()
        elif self._missing == 0:
            head, *parts = self._parts
            self._parts = []
            self._answer_request(head, b"".join(parts))

    def _leave_to_parser(self) -> None:
        """Feed to the parser what has arrived of an incomplete request."""
        parts, self._parts = self._parts, []
        self._parse_first(b"".join(parts))

    def _answer_request(self, head: bytes, body: bytes) -> None:
        """Answer a complete request with the known head."""
        assert self._known is not None  # noqa: S101
        assert self.predictions is not None  # noqa: S101
        _, caller = self._known
        if self.predictions.is_quick(caller, body):
            self._predict(caller, body)
        else:
            self._parse_first(head + body)

    def _repeatable_head(self, data: bytes) -> tuple[RepeatedHead, Caller] | None:
        """Return the head of the request that was just parsed, if others like it can be answered directly."""
        is_parsed = not self._is_incomplete or self._is_in_body
        if self.predictions is None or not is_parsed or not data.startswith(b"POST "):
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
        self._prediction = DirectPrediction(self.predictions, caller, self._answer, self._began)
        self._prediction.begin(body)

    def _answer(self, response: Response) -> None:
        """Send the response, and read the data that arrived meanwhile."""
        self._prediction = None
        ahead, self._early_data = self._early_data, b""
        if self.transport.is_closing():
            return
        headers = [*self.server_state.default_headers, *(response.headers or JSON)]
        if self._is_shutting_down and _CLOSE not in headers:
            headers.append(_CLOSE)
        joining: Any = self.transport
        joining.write_at_once(_encode_response(response, headers))
        if _CLOSE in headers:
            self.transport.close()
        self.on_response_complete()
        if self.request_log is not None and self.request_log.is_on and self._known is not None:
            request = self._known[1].request
            self.request_log.write(request, response.status, time.monotonic() - self._began)
        if ahead and not self.transport.is_closing():
            self.data_received(ahead)

    def close_if_slow(self) -> None:
        """Leave a body that takes long to the application, and close the connection if it takes too long."""
        if self._parts:
            self._leave_to_parser()
        super().close_if_slow()

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the request that is being answered (asyncio callback)."""
        self._parts = []
        if self._prediction is not None:
            self._prediction.client_left()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close the connection, after the response if there is one (called by uvicorn)."""
        if self._prediction is not None:
            self._is_shutting_down = True
        else:
            if self._parts:
                self._leave_to_parser()
            super().shutdown()


def _encode_response(response: Response, headers: Headers) -> bytes:
    lines = [b"%b: %b\r\n" % header for header in headers]
    length = b"content-length: %d\r\n\r\n" % len(response.body)
    return b"".join([STATUS_LINE[response.status], *lines, length, response.body])
