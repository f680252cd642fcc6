"""uvicorn's HTTP protocol, with responses sent as one part, and connections closed whose request stops."""

import asyncio
from collections.abc import Iterable
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# A request without a further byte for this long is closed.
STALL_SECONDS = 10.0
# Copying a larger part takes longer than another system call.
_JOINED_BYTES = 256 * 2**10


class JoiningTransport:
    """A transport that sends two parts that are written in the same turn of the event loop as one.

    uvicorn writes the head and the body of a response one after the other. Sent each by itself, they take two
    system calls, and wake up the client twice.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes | memoryview) -> None:
        """Send `data` with the part that was written before it, or at the end of this turn."""
        if len(data) > _JOINED_BYTES:
            self._flush()
            self._transport.write(data)
        elif self._held:
            data, self._held = b"".join((self._held, data)), b""
            self._transport.write(data)
        else:
            self._held = bytes(data)
            self._loop.call_soon(self._flush)

    def close(self) -> None:
        """Close the connection after all that was written is sent."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        held, self._held = self._held, b""
        # A transport whose connection was lost in this turn raises errors.
        if held and not self._transport.is_closing():
            self._transport.write(held)


class HttpProtocol(HttpToolsProtocol):
    """Knows when the last byte of an incomplete request arrived."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._is_incomplete = False
        self._last_byte = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Use the transport of a new connection (asyncio callback)."""
        joining: Any = JoiningTransport(transport, self.loop)
        super().connection_made(joining)

    def data_received(self, data: bytes) -> None:
        """Feed the parser (asyncio callback)."""
        self._last_byte = self.loop.time()
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Handle the first byte of a request (parser callback)."""
        self._is_incomplete = True
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """Handle the last byte of a request (parser callback)."""
        self._is_incomplete = False
        super().on_message_complete()

    def close_if_stalled(self) -> None:
        """Close the connection if its client has stopped in the middle of a request."""
        now = self.loop.time()
        # Reading is paused while the request waits for us, not for its client.
        if not self._is_incomplete or self.flow.read_paused:
            self._last_byte = now
        elif now - self._last_byte > STALL_SECONDS and not self.transport.is_closing():
            # During the headers, `cycle` is the previous request.
            if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
                self.transport.write(_TIMEOUT)
            self.transport.close()


def close_stalled(connections: Iterable[object]) -> None:
    """Close each connection whose request has stopped."""
    for connection in list(connections):
        if isinstance(connection, HttpProtocol):
            connection.close_if_stalled()


_BODY = orjson.dumps({"error": f"The request stopped: no further byte arrived for {STALL_SECONDS:.0f} s"})
_TIMEOUT = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%b"
) % (len(_BODY), _BODY)
