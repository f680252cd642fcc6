"""Writes the parts that resumable uploads receive to their files while they arrive.

Django stores a request's whole body before it calls a view. So this ASGI middleware sends such a request
to Django without its body: the view checks the caller and the headers, and declares the part. The body is
then read here, at most `BLOCK_BYTES` at once.
"""

import asyncio
import errno
import time
from collections.abc import Callable

from asgiref.sync import ThreadSensitiveContext
from channels.db import database_sync_to_async
from django.http import HttpRequest

from jobs import upload_files
from jobs.actions.data import resumable_uploads
from jobs.errors import DiskFull, NotFound, TrainyardError
from jobs.upload_files import Part
from webapp.http_errors import Unavailable
from webapp.limits.refusals import Application, Message, Receive, Scope, Send, refuse
from webapp.limits.routes import PARTS, RESUMABLE

TUS_VERSION = "1.0.0"
BLOCK_BYTES = 2**20
EXTEND_SECONDS = 600.0
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

_EXPECTED = "trainyard.part"
"""The key of the ASGI scope with the list to which the view adds the part that it allows."""


def expect(request: HttpRequest, part: Part) -> None:
    """Allow the part that a request has in its body.

    Raises:
        Unavailable: the request did not come through this middleware.
    """
    expected: list[Part] | None = getattr(request, "scope", {}).get(_EXPECTED)
    if expected is None:
        raise Unavailable("This server receives no parts.")
    expected.append(part)


class ReceiveParts:
    """Passes requests to `application`, those with a part of an upload without their body."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request (the ASGI entry point)."""
        if not RESUMABLE.fullmatch(scope["path"]):
            await self._application(scope, receive, send)
        elif scope["method"] == "PATCH" and PARTS.fullmatch(scope["path"]):
            await self._answer_part(scope, receive, _with_version(send))
        else:
            await self._application(scope, receive, _with_version(send))

    async def _answer_part(self, scope: Scope, receive: Receive, send: Send) -> None:
        expected: list[Part] = []
        answer: list[Message] = []

        async def keep(message: Message) -> None:
            answer.append(message)

        await self._application({**scope, _EXPECTED: expected}, _no_body(), keep)
        if not expected:
            for message in answer:
                await send(message)
            return
        (part,) = expected
        try:
            is_complete = await _receive_part(part, receive)
        except TrainyardError as error:
            await refuse(scope, send, error)
            return
        finally:
            await _in_thread(lambda: resumable_uploads.extend(part.key))
        # A client that disconnected gets no answer, and one whose body is too large gets another.
        if is_complete:
            answer[0]["headers"] = [*answer[0]["headers"], (b"upload-offset", str(part.offset).encode())]
            for message in answer:
                await send(message)


def _with_version(send: Send) -> Send:
    async def forward(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [(b"tus-resumable", TUS_VERSION.encode()), (b"tus-version", TUS_VERSION.encode())]
            message = {**message, "headers": [*message["headers"], *headers]}
        await send(message)

    return forward


def _no_body() -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        if not messages:
            # Django listens for a disconnection meanwhile, which is noticed later.
            await asyncio.Event().wait()
        return messages.pop()

    return receive


async def _receive_part(part: Part, receive: Receive) -> bool:
    """Write a part to its file; return whether it has arrived completely.

    Received bytes are kept, unless the part has a checksum.

    Raises:
        DiskFull: the disk is full.
        NotFound: the upload was deleted or has expired.
        TrainyardError: the part does not fit to the upload.
    """
    try:
        await asyncio.to_thread(part.__enter__)
        try:
            await _require_upload(part)
            if not await _write(part, receive):
                return False
            await asyncio.to_thread(part.verify)
            await asyncio.to_thread(part.sync)
        finally:
            await asyncio.to_thread(part.__exit__, None, None, None)
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise DiskFull("The disk of the server is full. Send the rest of the file later.") from error
    return True


async def _write(part: Part, receive: Receive) -> bool:
    block = bytearray()
    extend_at = time.monotonic() + EXTEND_SECONDS
    while True:
        message = await receive()
        is_request: bool = message["type"] == "http.request"
        block += message.get("body", b"")
        is_last = not (is_request and message.get("more_body", False))
        if block and (len(block) >= BLOCK_BYTES or is_last):
            await asyncio.to_thread(part.write, bytes(block))
            block.clear()
        if is_last:
            return is_request
        if time.monotonic() > extend_at:
            extend_at = time.monotonic() + EXTEND_SECONDS
            await _require_upload(part)


async def _require_upload(part: Part) -> None:
    """Extend the upload, whose file is locked.

    Raises:
        NotFound: it was deleted since the view allowed the part. Then its file is deleted too.
    """
    if not await _in_thread(lambda: resumable_uploads.extend(part.key)):
        await asyncio.to_thread(upload_files.delete_file, part.key)
        raise NotFound("The upload was deleted, or has expired.")


async def _in_thread[Result](call: Callable[[], Result]) -> Result:
    async with ThreadSensitiveContext():
        result: Result = await database_sync_to_async(call)()
        return result
