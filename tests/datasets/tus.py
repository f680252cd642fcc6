"""A client of the tus protocol that speaks to the ASGI application, and can break off a part."""

import asyncio
import base64
import json
from typing import Any

from webapp.asgi import application

BLOCK = 64 * 2**10
KIB = 2**10


class Answer:
    """The response to one request."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    async def receive(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
        else:
            self.body += message.get("body", b"")


class Body:
    """A body in blocks. With `cut`, the client disconnects after so many bytes."""

    def __init__(self, content: bytes, cut: int | None = None) -> None:
        self.content, self.cut, self.sent = content, cut, 0
        self._is_done = False

    async def receive(self) -> dict[str, Any]:
        if self._is_done:
            await asyncio.Event().wait()
        end = min(self.sent + BLOCK, len(self.content) if self.cut is None else self.cut)
        if self.cut is not None and self.sent >= self.cut:
            return {"type": "http.disconnect"}
        part, self.sent = self.content[self.sent : end], end
        self._is_done = end == len(self.content)
        return {"type": "http.request", "body": part, "more_body": end < len(self.content)}


class TusClient:
    """A caller with a token."""

    def __init__(self, bearer: str, **headers: str) -> None:
        self._headers = {
            "host": "localhost",
            "authorization": bearer,
            "tus-resumable": "1.0.0",
            **headers,
        }

    async def ask(
        self, method: str, path: str, body: Body | None = None, *, announced: bool = True, **headers: str
    ) -> Answer:
        """Send one request; `_` in names of headers is `-`."""
        body = body or Body(b"")
        sent = self._headers | {name.replace("_", "-"): value for name, value in headers.items()}
        if announced:
            sent["content-length"] = str(len(body.content))
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in sent.items() if value],
        }
        answer = Answer()
        async with asyncio.timeout(60):
            await application(scope, body.receive, answer.receive)
        return answer

    async def begin(self, length: int, name: str = "a.csv", project: str = "yard", **headers: str) -> Answer:
        named = {"filename": name, "project": project}
        metadata = ",".join(
            f"{key} {base64.b64encode(text.encode()).decode()}" for key, text in named.items()
        )
        sent: dict[str, Any] = {"upload_length": str(length), "upload_metadata": metadata, **headers}
        return await self.ask("POST", "/api/v1/uploads", **sent)

    async def place(self, length: int, name: str = "a.csv", project: str = "yard") -> str:
        """Begin an upload; return its address."""
        answer = await self.begin(length, name, project)
        assert answer.status == 201, answer.body
        return answer.headers["location"]

    async def part(
        self, place: str, content: bytes, offset: int, *, cut: int | None = None, **headers: str
    ) -> Answer:
        kind = "application/offset+octet-stream"
        sent: dict[str, Any] = {"content_type": kind, "upload_offset": str(offset), **headers}
        return await self.ask("PATCH", place, Body(content, cut), **sent)

    async def offset(self, place: str) -> int:
        return int((await self.ask("HEAD", place)).headers["upload-offset"])

    async def form(self, path: str, **fields: str) -> Answer:
        """Send a multipart form. A value with spaces is a list."""
        parts = [
            f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, values in fields.items()
            for value in values.split(" ")
        ]
        body = Body("".join([*parts, "--x--\r\n"]).encode())
        return await self.ask("POST", path, body, content_type="multipart/form-data; boundary=x")

    async def version(self, place: str, slug: str = "s", project: str = "yard", **fields: str) -> Answer:
        """Create a data set from an upload."""
        key = place.rsplit("/", 1)[-1]
        return await self.form("/api/v1/datasets", project=project, slug=slug, upload=key, **fields)
