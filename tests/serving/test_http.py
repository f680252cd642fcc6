"""A request that stops in the middle is closed, and a response is sent as one part."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from transport import http as limits
from workers.serving import http
from workers.serving.asgi import Request
from workers.serving.bodies.memory import BodyMemory
from workers.serving.response import Response

GOOD = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nab"


async def echo(scope: Any, receive: Any, send: Any) -> None:
    body = await Request(scope, receive).body(100, time.monotonic() + 10, BodyMemory(100))
    assert isinstance(body, bytes | bytearray)
    await Response(body).send(send)


@pytest.fixture
async def state(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[ServerState, int]]:
    """A listening server; each connection counts as stalled as soon as it waits for a byte."""
    monkeypatch.setattr(limits, "STALL_SECONDS", 0.0)
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
            limits.close_slow(state.connections)
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
        limits.close_slow(state[0].connections)
    writer.close()


class Parts:
    """A transport that keeps the parts that are sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.sent.append(data)

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def get_extra_info(self, name: str) -> None:
        """Know nothing, as after the connection was lost."""


def joining() -> tuple[Any, Parts]:
    parts: Any = Parts()
    return http.JoiningTransport(parts, asyncio.get_running_loop()), parts


async def test_a_response_is_sent_as_one_part() -> None:
    config, parts = uvicorn.Config(echo, http=http.HttpProtocol, log_config=None), Parts()
    connection: Any = http.HttpProtocol(config, ServerState(), {})
    connection.connection_made(parts)
    connection.data_received(GOOD)
    async with asyncio.timeout(10):
        while not parts.sent:
            await asyncio.sleep(0)
    (response,) = parts.sent
    assert response.startswith(b"HTTP/1.1 200 ")
    assert response.endswith(b"ab")
    connection.connection_lost(None)


async def test_a_part_that_stays_alone_is_sent_at_the_end_of_the_turn() -> None:
    transport, parts = joining()
    for part in (b"head", b"other"):
        transport.write(part)
        await asyncio.sleep(0)
    assert parts.sent == [b"head", b"other"]


async def test_a_large_body_is_sent_after_its_head() -> None:
    transport, parts = joining()
    body = bytes(http._JOINED_BYTES + 1)
    transport.write(b"head")
    transport.write(body)
    await asyncio.sleep(0)
    assert parts.sent == [b"head", body]


async def test_a_part_is_sent_before_the_connection_is_closed() -> None:
    transport, parts = joining()
    transport.write(b"head")
    transport.close()
    await asyncio.sleep(0)
    assert parts.sent == [b"head"]
    assert parts.is_closed


async def test_a_part_for_a_connection_that_was_lost_is_dropped() -> None:
    transport, parts = joining()
    transport.write(b"head")
    parts.is_closed = True
    await asyncio.sleep(0)
    assert parts.sent == []


@pytest.mark.parametrize(
    ("content", "end"),
    [
        pytest.param(b"HEAD / HTTP/1.1\r\n\r\n", b"content-length: 0\r\n\r\n", id="head"),
        pytest.param(
            b"POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n",
            b"100 Continue\r\n\r\n",
            id="continue",
        ),
        pytest.param(GOOD * 9 + GOOD.replace(b"ab", b"cd"), b"cd", id="many requests at once"),
    ],
)
async def test_an_answer_of_one_part_or_of_many_arrives(
    state: tuple[ServerState, int], content: bytes, end: bytes
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", state[1])
    writer.write(content)
    async with asyncio.timeout(10):
        assert (await reader.readuntil(end)).endswith(end)
    writer.close()
