"""uvicorn's HTTP protocol with limits: heads' sizes, the time for each step, the open connections."""

import asyncio
import json
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, ClassVar

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from transport.addresses import plain_client
from transport.admission import Admission
from transport.lingering import LingeringTransport
from transport.slow_readers import ReadingRate
from transport.websocket import CountedWebSocket

# From the connection, or the first byte of a further request, to the end of its head.
HEAD_SECONDS = 15.0
# A body without a further byte for this long is closed, and one that is slower than this on average.
STALL_SECONDS = 10.0
BODY_SECONDS, BODY_BYTES_PER_SECOND = 30.0, 8 * 2**10
MAX_HEAD_BYTES = 64 * 2**10
MAX_HEADERS = 128
MAX_LENGTH_DIGITS = 20
# Chunks of one byte each take six bytes.
BYTES_PER_BODY_BYTE = 16
# Read and dropped of a body whose request is answered already.
MAX_DROPPED_BYTES = 2**20
# Requests that were sent before the responses to earlier ones. Each takes about 2 KB, and can have 18 bytes.
MAX_PIPELINED = 16


class _TooLarge(Exception):
    """The head is larger than allowed, or too many requests wait."""


class LimitedHttpProtocol(HttpToolsProtocol):
    """Closes connections that wait too long, send too much around a body, or are too many."""

    admission: ClassVar[Admission] = Admission(max_connections=4096, max_per_address=256)

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.peer = ""
        self._is_admitted = False
        self._is_incomplete = False
        # Since when the head is awaited; None between requests and after the head.
        self._head_since: float | None = None
        self._head_bytes = self._header_count = 0
        self._body_bytes = self._frame_bytes = 0
        self._is_in_body = False
        self._last_byte = self._checked = self._body_seconds = 0.0
        self._reading = ReadingRate()
        # The request that is being answered, and its application while it is held back.
        self._current: RequestResponseCycle | None = None
        self._held: ASGI3Application | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Admit a new connection, or close it (asyncio callback)."""
        self._lingering = LingeringTransport(transport, self.loop, lambda: self._is_incomplete)
        super().connection_made(self.wrapped(self._lingering))
        self.client = plain_client(self.client)
        self._head_since = self._last_byte = self.loop.time()
        self.peer = self.client[0] if self.client else ""
        self._is_admitted = self.admission.admit(self)
        if not self._is_admitted:
            self.refuse(
                HTTPStatus.SERVICE_UNAVAILABLE, "Too many connections are open. Try again in a moment."
            )

    def wrapped(self, transport: Any) -> Any:
        """Return the transport to use, for subclasses that change how data is sent."""
        return transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting the connection, and end its requests (asyncio callback)."""
        self.forget()
        # uvicorn disconnects only the last request, and would start the waiting ones one after the other.
        self.pipeline.clear()
        self._held = None
        if self._current is not None and not self._current.response_complete:
            self._current.disconnected = True
            self._current.message_event.set()
        super().connection_lost(exc)

    def forget(self) -> None:
        """Stop counting the connection."""
        if self._is_admitted:
            self._is_admitted = False
            self.admission.release(self)

    def mark_waiting(self) -> None:
        """Allow to close this connection to make room for another one."""
        self.admission.mark_waiting(self)

    def evict(self) -> None:
        """Close this connection to make room for another one."""
        self._is_admitted = False
        # Closed at once: the new connection needs the room.
        self._is_incomplete = False
        if self.transport.get_write_buffer_size():
            # `close` waits until the client has read everything.
            self.transport.abort()
        else:
            self.transport.close()
        self._lingering.end()

    def data_received(self, data: bytes) -> None:
        """Feed the parser (asyncio callback)."""
        self._last_byte = self.loop.time()
        # Also for blank lines before a request, which the parser skips.
        if self._head_since is None and not self._is_incomplete:
            self._head_since = self._last_byte
        was_in_body = self._is_in_body
        if was_in_body:
            self._frame_bytes += len(data)
        else:
            self._head_bytes += len(data)
        super().data_received(data)
        if not self.transport.is_closing():
            self._check_sizes(was_in_body)

    def _check_sizes(self, was_in_body: bool) -> None:
        """Refuse incomplete heads and trailers that the parser collects, and frames without content."""
        if not self._is_in_body and self._head_bytes > MAX_HEAD_BYTES:
            self.refuse_head()
        elif was_in_body and self._is_in_body and self._has_large_frames():
            self.refuse(HTTPStatus.BAD_REQUEST, "The frames of the body are larger than its content.")

    def _has_large_frames(self) -> bool:
        return self._frame_bytes - self._body_bytes > MAX_HEAD_BYTES + BYTES_PER_BODY_BYTE * self._body_bytes

    def on_message_begin(self) -> None:
        """Handle a request's first byte (parser callback)."""
        self._is_incomplete = True
        self._header_count = 0
        if self._head_since is None:
            self._head_since = self.loop.time()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header, or a trailer after the body (parser callback)."""
        self._header_count += 1
        if self._header_count > MAX_HEADERS:
            raise _TooLarge
        # The parser accepts leading zeros. Python does not convert thousands of digits.
        if len(value) > MAX_LENGTH_DIGITS and name.lower() == b"content-length":
            raise _TooLarge
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start to answer (parser callback)."""
        if self._is_head_large() or len(self.pipeline) >= MAX_PIPELINED:
            raise _TooLarge
        self._is_in_body, self._head_since, self._head_bytes = True, None, 0
        self._body_bytes = self._frame_bytes = 0
        self._body_seconds = 0.0
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Start to answer a request, once the client has read the responses to earlier ones.

        Otherwise the request would wait with its finished response, and keep its thread and its place.
        """
        self._current = cycle
        if self.flow.write_paused:
            self._held = app
            self.mark_waiting()
        else:
            self.admission.mark_busy(self)
            super()._start_asgi_task(cycle, app)

    def resume_writing(self) -> None:
        """Start to answer a request that was held back (asyncio callback)."""
        super().resume_writing()
        if self._held is not None and self._current is not None and not self.transport.is_closing():
            held, self._held = self._held, None
            self._start_asgi_task(self._current, held)

    def on_body(self, body: bytes) -> None:
        """Handle a part of the body (parser callback)."""
        self._body_bytes += len(body)
        super().on_body(body)
        # The rest of a body that is not read only costs time.
        if self.cycle.response_complete and self._body_bytes > MAX_DROPPED_BYTES:
            self.transport.close()

    def on_message_complete(self) -> None:
        """Handle a request's last byte (parser callback)."""
        self._is_incomplete = self._is_in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, or start to answer it (response callback)."""
        super().on_response_complete()
        if self.cycle is None or self.cycle.response_complete:
            self.mark_waiting()

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection to the WebSocket protocol, which stops counting it at its end."""
        self._is_incomplete = False
        self.admission.mark_busy(self)
        super().handle_websocket_upgrade()
        socket = self.transport.get_protocol()
        if isinstance(socket, CountedWebSocket):
            socket.counted = self

    def send_400_response(self, msg: str) -> None:
        """Answer a request that the parser rejects."""
        if len(self.pipeline) >= MAX_PIPELINED:
            self.refuse(
                HTTPStatus.BAD_REQUEST, f"More than {MAX_PIPELINED} requests wait for their responses."
            )
            return
        is_head_large = self._is_incomplete and not self._is_in_body and self._is_head_large()
        if is_head_large or self._header_count > MAX_HEADERS:
            self.refuse_head()
        else:
            self.refuse(HTTPStatus.BAD_REQUEST, msg)

    def _is_head_large(self) -> bool:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MAX_HEAD_BYTES

    def refuse_head(self) -> None:
        """Answer a request whose head is too large, and close the connection."""
        detail = f"The head of a request has at most {MAX_HEAD_BYTES:,} bytes and {MAX_HEADERS} headers."
        self.refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, detail)

    def refuse(self, status: HTTPStatus, detail: str) -> None:
        """Answer with an error unless a response has begun, and close the connection."""
        current = self._current
        if current is None or current.response_complete or not current.response_started:
            kind, body = self.error_body(status, detail)
            retry = b"retry-after: 1\r\n" if status == HTTPStatus.SERVICE_UNAVAILABLE else b""
            self.transport.write(
                b"HTTP/1.1 %d %b\r\ncontent-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n%b\r\n%b"
                % (status, status.phrase.encode(), kind, len(body), retry, body)
            )
        self.transport.close()

    def error_body(self, status: HTTPStatus, detail: str) -> tuple[bytes, bytes]:
        """Return an error's media type and body, by default a problem document (RFC 9457)."""
        code = status.name.lower()
        document = {"type": "about:blank", "title": status.phrase, "status": status, "detail": detail}
        return b"application/problem+json", json.dumps(document | {"code": code}).encode()

    def close_if_slow(self) -> None:
        """Close the connection if its client takes too long for the present step."""
        now = self.loop.time()
        elapsed, self._checked = now - (self._checked or now), now
        # Also of a connection that is being closed, which waits until everything is read.
        if self._reading.is_too_slow(self.transport, now):
            self.transport.abort()
        if self.transport.is_closing():
            return
        if self.flow.read_paused:
            # Reading is paused while the request waits for us, not for its client.
            self._last_byte = now
            self._head_since = self._head_since and now
        elif self._head_since is not None:
            if now - self._head_since > HEAD_SECONDS or self._is_stalled(now):
                self._close_slow_head(now)
        elif self._is_incomplete:
            self._check_body(now, elapsed)

    def _is_stalled(self, now: float) -> bool:
        return self._is_incomplete and now - self._last_byte > STALL_SECONDS

    def _close_slow_head(self, now: float) -> None:
        if self._is_stalled(now):
            self._refuse_stalled()
        elif self._is_incomplete:
            self.refuse(HTTPStatus.REQUEST_TIMEOUT, f"The head took longer than {HEAD_SECONDS:.0f} s.")
        else:
            # A client that has sent nothing expects no response.
            self.transport.close()

    def _refuse_stalled(self) -> None:
        detail = f"The request stopped: no further byte arrived for {STALL_SECONDS:.0f} s"
        self.refuse(HTTPStatus.REQUEST_TIMEOUT, detail)

    def _check_body(self, now: float, elapsed: float) -> None:
        self._body_seconds += elapsed
        if now - self._last_byte > STALL_SECONDS:
            self._refuse_stalled()
        elif self._body_seconds > BODY_SECONDS + self._body_bytes / BODY_BYTES_PER_SECOND:
            detail = f"The body arrives at less than {BODY_BYTES_PER_SECOND:,} bytes per second."
            self.refuse(HTTPStatus.REQUEST_TIMEOUT, detail)


def close_slow(connections: Iterable[object]) -> None:
    """Close each connection whose client takes too long. Call it once per second."""
    for connection in list(connections):
        if isinstance(connection, LimitedHttpProtocol | CountedWebSocket):
            connection.close_if_slow()
