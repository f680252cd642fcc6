"""Streams downloads in blocks, so that large files are never in memory as a whole."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

BLOCK = 1 << 18
"""Bytes per block."""


def describe_download(kind: str) -> dict[str, Any]:
    """Return the OpenAPI description for a download with the media type `kind`."""
    # Text is no binary: generated clients read it as a string.
    binary = {} if kind.startswith("text/") else {"format": "binary"}
    return {"responses": {200: {"content": {kind: {"schema": {"type": "string", **binary}}}}}}


def attachment(request: HttpRequest, path: Path, name: str) -> StreamingHttpResponse:
    """Return a file as a download under `name`, which must not contain quotes."""
    # Under ASGI, Django would read a synchronous iterator to its end before it sends the first byte.
    chunks = _read_async(path) if isinstance(request, ASGIRequest) else _read(path)
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Length": str(path.stat().st_size),
    }
    return StreamingHttpResponse(chunks, content_type="application/octet-stream", headers=headers)


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            yield block


def stream_download(
    request: HttpRequest, blocks: Iterator[bytes], *, name: str, kind: str
) -> StreamingHttpResponse:
    """Return generated blocks as a download under `name`. Text is UTF-8."""
    content = _as_async(blocks) if isinstance(request, ASGIRequest) else blocks
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    # Without it, clients read text as Latin-1.
    charset = "; charset=utf-8" if kind.startswith("text/") else ""
    return StreamingHttpResponse(content, content_type=f"{kind}{charset}", headers=headers)


async def _as_async(blocks: Iterator[bytes]) -> AsyncIterator[bytes]:
    while (block := await sync_to_async(lambda: next(blocks, None))()) is not None:
        yield block


async def _read_async(path: Path) -> AsyncIterator[bytes]:
    file = await sync_to_async(lambda: path.open("rb"))()
    try:
        while block := await sync_to_async(file.read)(BLOCK):
            yield block
    finally:
        file.close()
