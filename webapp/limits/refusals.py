"""Responds to a request that is refused before Django has read it, and closes its connection."""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from django.template.loader import render_to_string

from jobs.errors import TrainyardError

CHECKSUM_MISMATCH = 460

type Message = MutableMapping[str, Any]
type Scope = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]
type Application = Callable[[Scope, Receive, Send], Awaitable[None]]


async def refuse(scope: Scope, send: Send, error: TrainyardError, **fields: int) -> None:
    """Answer with an error: a page for browsers, a problem document (RFC 9457) for others.

    Args:
        scope: the request.
        send: its channel.
        error: the reason.
        fields: further members in the problem document.
    """
    headers = dict(scope["headers"])
    if b"text/html" in headers.get(b"accept", b"") and not scope["path"].startswith("/api/"):
        kind, body = b"text/html; charset=utf-8", _page(error)
    else:
        kind, body = b"application/problem+json", _problem(error, fields)
    sent = [
        (b"content-type", kind),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        # The rest of the body is not read, so the connection cannot be used for another request.
        (b"connection", b"close"),
    ]
    if error.status == HTTPStatus.UNAUTHORIZED:
        sent.append((b"www-authenticate", b'Bearer realm="trainyard"'))
    if (seconds := getattr(error, "retry_after", None)) is not None:
        sent.append((b"retry-after", str(seconds).encode()))
    await send({"type": "http.response.start", "status": error.status, "headers": sent})
    await send({"type": "http.response.body", "body": body})


def _page(error: TrainyardError) -> bytes:
    return render_to_string("error_bare.html", {"error": error, "status": error.status}).encode()


def _problem(error: TrainyardError, fields: dict[str, int]) -> bytes:
    document = {
        "type": "about:blank",
        "title": _phrase(error.status),
        "status": error.status,
        "detail": error.message,
        "code": error.code,
    }
    return json.dumps(document | fields).encode()


def _phrase(status: int) -> str:
    # The tus protocol has a status of its own.
    return "Checksum Mismatch" if status == CHECKSUM_MISMATCH else HTTPStatus(status).phrase
