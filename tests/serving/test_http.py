"""A request that stops in the middle is closed."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from workers.serving import http
from workers.serving.asgi import Request, Response

GOOD = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nab"


async def echo(scope: Any, receive: Any, send: Any) -> None:
    body = await Request(scope, receive).body(100)
    await Response(body).send(send)


@pytest.fixture
async def state(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[ServerState, int]]:
    """A listening server; each connection counts as stalled as soon as it waits for a byte."""
    monkeypatch.setattr(http, "STALL_SECONDS", 0.0)
    state, config = ServerState(), uvicorn.Config(echo, http=http.HttpProtocol, log_config=None)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: http.HttpProtocol(config, state, {}), "127.0.0.1", 0)
    yield state, server.sockets[0].getsockname()[1]
    server.close()


async def received(state: ServerState, port: int, content: bytes) -> bytes:
    """Send `content`, and look for stalled connections until the server has closed this one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(content)
    answer = asyncio.create_task(reader.read())
    async with asyncio.timeout(10):
        while not answer.done():
            await asyncio.wait([answer], timeout=0.01)
            http.close_stalled(state.connections)
    writer.close()
    return await answer


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"POST / HT", id="in the first line"),
        pytest.param(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n", id="before the body"),
        pytest.param(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\na", id="inside the body"),
    ],
)
async def test_a_request_that_stops_is_closed_with_a_reason(
    state: tuple[ServerState, int], content: bytes
) -> None:
    answer = await received(*state, content)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"The request stopped" in answer


async def test_a_request_that_stops_after_an_answered_one_is_closed(state: tuple[ServerState, int]) -> None:
    answer = await received(*state, GOOD + b"POST / HT")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 408 " in answer


async def test_an_open_connection_without_a_request_stays_open(state: tuple[ServerState, int]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", state[1])
    for _ in range(2):
        writer.write(GOOD)
        assert (await reader.readuntil(b"ab")).startswith(b"HTTP/1.1 200 ")
        http.close_stalled(state[0].connections)
    writer.close()
