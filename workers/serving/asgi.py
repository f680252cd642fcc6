"""Minimal ASGI request with limits on body size and time."""

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from jobs.messages.traffic import NO_VERSION
from workers.model_process.errors import (
    BadRequest,
    BodyTooLarge,
    ClientGone,
    DeadlineExceeded,
)
from workers.serving.access import Access
from workers.serving.bodies.memory import BodyMemory
from workers.serving.bodies.packed import PackedBody, coding_of
from workers.serving.response import Headers

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Request:
    """One HTTP request. Times are monotonic, in seconds.

    Attributes:
        address: the client's.
        version: the version that was chosen to answer; 0 until then.
        access: the access that its token gives; None if no token is needed.
        http: the version of HTTP, such as `1.1`.
        query: what follows the `?` in its address, not decoded.
        held: how many bytes of its body `BodyMemory` counts.
    """

    __slots__ = (
        *("_receive", "access", "address", "arrived", "headers", "held", "http", "method", "path"),
        *("query", "version"),
    )

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.arrived = time.monotonic()
        self.version = NO_VERSION
        self.held = 0
        self.access: Access | None = None
        self.method: str = scope["method"]
        self.http: str = scope.get("http_version", "1.1")
        # Undecoded: a %2F or %3A inside a model name must not count as a separator
        self.path: str = scope["raw_path"].decode("ascii", "replace")
        self.query: str = scope.get("query_string", b"").decode("ascii", "replace")
        self.headers: Headers = scope["headers"]
        self.address: str = (scope.get("client") or ("",))[0]
        self._receive = receive

    def header(self, name: bytes) -> str | None:
        """Return the first header of this lower-case name."""
        for key, value in self.headers:
            if key == name:
                return value.decode("latin-1")
        return None

    async def body(self, limit: int, deadline: float, memory: BodyMemory) -> bytes | bytearray | PackedBody:
        """Read the whole body.

        Args:
            limit: maximum bytes, compressed and unpacked.
            deadline: the time until which it must have arrived.
            memory: counts it as `held`.

        Raises:
            BodyTooLarge: its length, or its Content-Length, exceeds `limit` bytes.
            ClientGone: the client disconnected before the end.
            DeadlineExceeded: it has not arrived in time.
            NoRoom: other bodies take too much memory.
            UnsupportedEncoding: its Content-Encoding is unknown.
        """
        announced, coding = b"0", None
        for name, value in self.headers:
            if name == b"content-length":
                announced = value
            elif name == b"content-encoding":
                coding = coding_of(value)
        # A body that is announced as too large is refused before it is sent.
        if announced.isdigit() and int(announced) > limit:
            raise BodyTooLarge(f"The body has {int(announced)} bytes; the limit is {limit}")
        body = await self._read(limit, deadline, memory)
        return body if coding is None else PackedBody(body, coding, limit)

    async def _read(self, limit: int, deadline: float, memory: BodyMemory) -> bytes | bytearray:
        message = await self._receive()
        # Most bodies arrive in one message, which needs no copy into a buffer.
        if message["type"] == "http.request" and not message.get("more_body"):
            return _check_size(limit, bytes(message.get("body", b"")))
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                return await self._rest(message, limit, memory)
        except TimeoutError:
            raise DeadlineExceeded("Deadline exceeded while the body was read") from None

    async def _rest(
        self, message: MutableMapping[str, Any], limit: int, memory: BodyMemory
    ) -> bytes | bytearray:
        collected = bytearray()
        while message["type"] == "http.request":
            collected += message.get("body", b"")
            if len(collected) > limit:
                break
            self.held = memory.resize(self.held, len(collected))
            if not message.get("more_body"):
                return collected
            message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientGone("the client disconnected while sending")
        return _check_size(limit, collected)

    def deadline(self, default: float) -> float:
        """Return the request's deadline (`X-Request-Timeout-Ms`).

        Raises:
            BadRequest: the header is not a positive number.
        """
        value = self.header(b"x-request-timeout-ms")
        if value is None:
            return self.arrived + default
        try:
            milliseconds = float(value)
        except ValueError:
            milliseconds = 0.0
        if not 0 < milliseconds < float("inf"):
            raise BadRequest(f"X-Request-Timeout-Ms is {value!r}; give a positive number of milliseconds")
        return self.arrived + min(milliseconds / 1000, default)

    async def disconnected(self, until: float) -> bool:
        """Wait until the client disconnects, at most until `until`; return whether it did."""
        try:
            async with asyncio.timeout(until - time.monotonic()):
                # The body has been read, so the next message is the disconnection.
                while (await self._receive())["type"] != "http.disconnect":
                    pass
        except TimeoutError:
            return False
        return True


def _check_size[Body: (bytes, bytearray)](limit: int, body: Body) -> Body:
    if len(body) > limit:
        raise BodyTooLarge(f"The body is larger than the limit of {limit} bytes")
    return body
