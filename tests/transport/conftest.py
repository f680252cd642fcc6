"""A real server with real sockets, in the test's event loop."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from transport import http, slow_readers
from transport.http import LimitedHttpProtocol
from transport.server import LimitedServer, limited
from transport.websocket import CountedWebSocket

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def head(self) -> bytes:
        """Read until the end of a response's head."""
        async with asyncio.timeout(10):
            return await self._reader.readuntil(b"\r\n\r\n")

    async def rest(self) -> bytes:
        """Read until the server closes the connection."""
        async with asyncio.timeout(10):
            try:
                return await self._reader.read()
            except ConnectionError:
                return b""

    def close(self) -> None:
        self._writer.close()


class Running:
    """A listening server; its application gets every request."""

    def __init__(self, server: LimitedServer, listener: socket.socket, health_socket: Path) -> None:
        self.server, self.health_socket = server, health_socket
        self.port = listener.getsockname()[1]
        self.clients: list[Client] = []

    @property
    def protocol(self) -> type[LimitedHttpProtocol]:
        protocol_class: Any = self.server.config.http_protocol_class
        return protocol_class

    @property
    def open(self) -> int:
        """The connections that count."""
        return self.protocol.admission.count

    async def connect(self, data: bytes = b"") -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.port))
        self.clients.append(client)
        client.send(data)
        return client

    async def connect_to_health_socket(self) -> Client:
        client = Client(*await asyncio.open_unix_connection(self.health_socket))
        self.clients.append(client)
        return client

    async def until_open(self, count: int) -> None:
        async with asyncio.timeout(10):
            while self.open != count:
                await asyncio.sleep(0.005)

    async def until(self, condition: Callable[[Any], bool]) -> None:
        """Wait until a connection meets a condition."""
        async with asyncio.timeout(10):
            while not any(
                condition(open_connection) for open_connection in self.server.server_state.connections
            ):
                await asyncio.sleep(0.005)

    async def close_slow_until(self, answer: "asyncio.Task[bytes]") -> bytes:
        """Look for slow connections until the response has arrived."""
        async with asyncio.timeout(10):
            while not answer.done():
                await self.server.close_slow()
                await asyncio.wait([answer], timeout=0.01)
        return await answer


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the body's length."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
        return
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    body = b"%d" % size
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]}
    )
    await send({"type": "http.response.body", "body": body})


type Start = Callable[..., Any]


@pytest.fixture
async def start(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Start]:
    """Start a server with limits; by default none is reached."""
    started: list[Running] = []

    async def begin(
        application: Any = echo,
        most: int = 1000,
        per_address: int = 1000,
        trusted: tuple[str, ...] = (),
        listener: socket.socket | None = None,
    ) -> Running:
        protocol = limited(
            LimitedHttpProtocol, max_connections=most, max_per_address=per_address, trusted=list(trusted)
        )
        config = uvicorn.Config(
            application, http=protocol, ws=CountedWebSocket, lifespan="off", log_config=None
        )
        config.load()
        path = tmp_path_factory.mktemp("run") / "web.sock"
        server = LimitedServer(config, path)
        server.lifespan = config.lifespan_class(config)
        listener = listener or socket.create_server(("127.0.0.1", 0))
        await server.startup([listener])
        started.append(Running(server, listener, path))
        return started[-1]

    yield begin
    for running in started:
        for client in running.clients:
            client.close()
        for http_server in running.server.servers:
            http_server.close()
        await running.until_open(0)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every wait for a client is over at once."""
    monkeypatch.setattr(http, "HEAD_SECONDS", 0.0)
    monkeypatch.setattr(http, "STALL_SECONDS", 0.0)
    monkeypatch.setattr(slow_readers, "WRITE_SECONDS", 0.0)
