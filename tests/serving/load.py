"""Generates load: many concurrent clients on plain sockets, faster than the server."""

import asyncio
import itertools
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import httpx2


@dataclass
class Answer:
    """One answer, with its request."""

    asked: float
    status: int
    version: int
    body: bytes
    seconds: float

    @property
    def is_right(self) -> bool:
        """Status 200, made by the version that the header names, from this very request's input."""
        if self.status != 200:
            return False
        return bool(json.loads(self.body)["predictions"] == [[self.version * self.asked, self.version]])


@dataclass
class Load:
    """Clients that send requests until they are stopped; each request has its own input."""

    url: str
    model: str
    clients: int = 16
    answers: list[Answer] = field(default_factory=list)
    stopped: bool = False
    _inputs: "itertools.count[int]" = field(default_factory=itertools.count)

    async def during(self, work: Callable[[], Awaitable[None]], *, at_least: int = 0) -> None:
        """Keep asking while `work` runs, and on until there are `at_least` answers."""
        tasks = [asyncio.create_task(self._client()) for _ in range(self.clients)]
        try:
            await work()
            while len(self.answers) < at_least and not all(task.done() for task in tasks):
                await asyncio.sleep(0.02)
        finally:
            self.stopped = True
            await asyncio.gather(*tasks)

    @property
    def wrong(self) -> list[Answer]:
        return [answer for answer in self.answers if not answer.is_right]

    @property
    def versions_in_order(self) -> list[int]:
        """The versions that answered, repeats left out: how often a swap was seen."""
        return [version for version, _ in itertools.groupby(answer.version for answer in self.answers)]

    async def _client(self) -> None:
        address = httpx2.URL(self.url)
        reader, writer = await asyncio.open_connection(address.host, address.port)
        try:
            while not self.stopped:
                self.answers.append(await self._ask(reader, writer))
        finally:
            writer.close()

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Answer:
        asked = float(next(self._inputs) % 1_000_000)
        body = b'{"instances":[[%.1f,0,0,0]]}' % asked
        began = time.monotonic()
        writer.write(b"POST /v1/models/%b:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b"
                     % (self.model.encode(), len(body), body))  # fmt: skip
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        headers = dict(line.split(": ", 1) for line in head[1:] if line)
        content = await reader.readexactly(int(headers["content-length"]))
        version = int(headers.get("x-trainyard-model-version", 0))
        return Answer(asked, int(head[0].split()[1]), version, content, time.monotonic() - began)
