"""Responses from the prediction server, which a body worker creates without the event loop's modules."""

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

import orjson

from workers.model_process.errors import (
    BodyTooLarge,
    NoRoom,
    ServingError,
    UnsupportedEncoding,
    plain_text,
)

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

JSON: Headers = [(b"content-type", b"application/json")]
BINARY: Headers = [(b"content-type", b"application/octet-stream")]
TEXT: Headers = [(b"content-type", b"text/plain; version=0.0.4; charset=utf-8")]


@dataclass(slots=True)
class Response:
    """One complete response. The first of its headers is the content type."""

    body: bytes | bytearray | memoryview
    status: int = 200
    headers: Headers | None = None

    async def send(self, send: Send) -> None:
        """Send status, headers and body."""
        headers = [*(self.headers or JSON), (b"content-length", str(len(self.body)).encode())]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def json_response(value: object, status: int = 200) -> Response:
    """Return a response with a value as JSON."""
    return Response(orjson.dumps(value), status)


def json_error(message: str, status: int) -> Response:
    """Return an error as `{"error": …}`."""
    return json_response({"error": message}, status)


def error_response(error: ServingError, encode: Callable[[str, int], Response] = json_error) -> Response:
    """Return the response to a request that failed.

    Args:
        error: its message and status.
        encode: returns the response for a message and a status, in a protocol's form.
    """
    # A message may quote the request, however long it is.
    response = encode(plain_text(str(error), limit=2000), error.status)
    headers = [*(response.headers or JSON)]
    if error.retry_after is not None:
        headers.append((b"retry-after", str(error.retry_after).encode()))
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if isinstance(error, UnsupportedEncoding):
        headers.append((b"accept-encoding", b"gzip, deflate"))
    # The body is not read, so the connection cannot be used for another request.
    if isinstance(error, BodyTooLarge | NoRoom | UnsupportedEncoding):
        headers.append((b"connection", b"close"))
    response.headers = headers
    return response
