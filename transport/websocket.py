"""uvicorn's WebSocket protocol, counted as a connection, with limits of fragments and of unread data."""

from asyncio import BaseTransport
from typing import Any, Protocol

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from transport.addresses import plain_client
from transport.slow_readers import ReadingRate

# Of one message. The limit of a message's size does not count empty fragments.
MAX_FRAGMENTS = 256


class Counted(Protocol):
    """The connection as it was counted before it became a WebSocket."""

    def forget(self) -> None:
        """Stop counting the connection."""

    def mark_waiting(self) -> None:
        """Allow to close the connection to make room for another one."""


class CountedWebSocket(WebSocketsSansIOProtocol):
    """A WebSocket that counts as a connection until its end."""

    counted: Counted | None = None

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._reading = ReadingRate()

    def connection_made(self, transport: BaseTransport) -> None:
        """Begin (asyncio callback)."""
        super().connection_made(transport)
        self.client = plain_client(self.client)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting the connection (asyncio callback)."""
        if self.counted is not None:
            self.counted.forget()
        super().connection_lost(exc)

    async def send(self, message: ASGISendEvent) -> None:
        """Send a message from the application."""
        await super().send(message)
        # Clients without credentials, whose sockets are closed, need not answer for ten seconds.
        if self.close_sent and self.counted is not None:
            self.counted.mark_waiting()

    def handle_cont(self, event: Frame) -> None:
        """Add a fragment to the message."""
        if self.close_sent:
            self.frames = []
        elif len(self.frames) >= MAX_FRAGMENTS:
            self.conn.send_close(CloseCode.MESSAGE_TOO_BIG, f"more than {MAX_FRAGMENTS} fragments")
            self.handle_parser_exception()
        else:
            super().handle_cont(event)

    def handle_parser_exception(self) -> None:
        """Close the connection if its client broke the protocol."""
        if self.conn.close_sent is None:
            # Before the handshake was answered, no close can be sent, which uvicorn takes for granted.
            self.transport.close()
        else:
            super().handle_parser_exception()

    def close_if_slow(self) -> None:
        """Close the connection if its client reads too slowly."""
        if self._reading.is_too_slow(self.transport, self.loop.time()):
            self.transport.abort()
