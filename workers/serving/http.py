"""The prediction server's HTTP protocol: limited, and with responses sent as one part."""

import asyncio
from http import HTTPStatus
from typing import Any

import orjson

from transport.http import LimitedHttpProtocol

# Copying a larger part takes longer than another system call.
_JOINED_BYTES = 256 * 2**10


class JoiningTransport:
    """A transport that sends two parts as one if they are written in the same turn of the event loop.

    uvicorn writes a response's head and body one after the other. Sent each by itself, they take two
    system calls, and wake up the client twice.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes | memoryview) -> None:
        """Send `data` with the part that was written before it, or at this turn's end."""
        if len(data) > _JOINED_BYTES:
            self._flush()
            self._transport.write(data)
        elif self._held:
            data, self._held = b"".join((self._held, data)), b""
            self._transport.write(data)
        else:
            self._held = bytes(data)
            self._loop.call_soon(self._flush)

    def write_at_once(self, data: bytes) -> None:
        """Send `data`, without waiting for another part."""
        self._flush()
        self._transport.write(data)

    def close(self) -> None:
        """Close the connection after all that was written is sent."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        held, self._held = self._held, b""
        # A transport whose connection was lost in this turn raises errors.
        if held and not self._transport.is_closing():
            self._transport.write(held)


class HttpProtocol(LimitedHttpProtocol):
    """Sends a response as one part, and errors in the prediction server's form."""

    def wrapped(self, transport: Any) -> JoiningTransport:
        """Return the transport to use."""
        return JoiningTransport(transport, self.loop)

    def error_body(self, status: HTTPStatus, detail: str) -> tuple[bytes, bytes]:  # noqa: ARG002
        """Return the media type and body for an error."""
        return b"application/json", orjson.dumps({"error": detail})
