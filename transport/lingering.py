"""Closes connections whose client still sends, so that the client can read the response."""

import asyncio
from collections.abc import Callable
from typing import Any

# The client has this long to notice the response and to stop. More bytes are not read: it then waits, and a
# proxy such as Caddy may find the response, where a reset would discard it.
LINGER_SECONDS = 5.0
LINGER_BYTES = 4 * 2**20


class LingeringTransport:
    """A transport that, before it closes in the middle of a request, reads and drops what still arrives.

    A connection that is closed while its client sends is reset, and the reset discards a response that the
    client has not read.

    Attributes:
        written: the bytes that were written so far.
    """

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, is_sending: Callable[[], bool]
    ) -> None:
        self._transport, self._loop, self._is_sending = transport, loop, is_sending
        self._lingers = False
        self.written = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send `data`, unless the connection is being closed."""
        # uvloop raises an error for a connection that was aborted while a response was being made.
        if not self.is_closing():
            self.written += len(data)
            self._transport.write(data)

    def is_closing(self) -> bool:
        """Return whether nothing can be sent any more."""
        return self._lingers or self._transport.is_closing()

    def close(self) -> None:
        """Close the connection, at once or after its client has stopped sending."""
        if self._lingers:
            return
        if self._transport.is_closing() or not self._is_sending() or not self._transport.can_write_eof():
            self._transport.close()
            return
        self._lingers = True
        protocol: Any = self._transport.get_protocol()
        self._transport.write_eof()
        self._transport.set_protocol(_Discard(protocol, self._transport))
        self._transport.resume_reading()
        self._loop.call_later(LINGER_SECONDS, self._transport.abort)

    def end(self) -> None:
        """Close the connection at once if it waits for its client to stop sending."""
        if self._lingers:
            self._transport.abort()


class _Discard(asyncio.Protocol):
    """Drops what arrives, up to `LINGER_BYTES`."""

    def __init__(self, protocol: asyncio.Protocol, transport: asyncio.Transport) -> None:
        self._protocol, self._transport = protocol, transport
        self._left = LINGER_BYTES

    def data_received(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()
