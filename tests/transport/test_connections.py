"""Connections that send nothing keep no other out, and none waits without end."""

import asyncio
import stat
from typing import Any

import pytest

from tests.transport.conftest import GET, Running, Start
from transport import http, lingering, open_files

FEW = open_files.MIN_CONNECTIONS
UPGRADE = (
    b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


async def test_silent_connections_make_room_for_a_request(start: Start) -> None:
    server: Running = await start(most=FEW)
    silent = [await server.connect() for _ in range(FEW + 20)]
    client = await server.connect(GET)
    assert b" 200 " in await client.head()
    assert server.open <= FEW
    assert await silent[0].rest() == b"", "the oldest one is closed"


async def test_connections_whose_requests_are_answered_are_not_closed_for_others(start: Start) -> None:
    release = asyncio.Event()

    async def waits(scope: Any, receive: Any, send: Any) -> None:
        await release.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    server: Running = await start(waits, per_address=2)
    busy = [await server.connect(GET) for _ in range(2)]
    async with asyncio.timeout(10):
        while len(server.server.server_state.tasks) < 2:
            await asyncio.sleep(0.005)
    third = await server.connect(GET)
    refused = await third.rest()
    assert refused.startswith(b"HTTP/1.1 503 ")
    assert b"application/problem+json" in refused
    assert b"retry-after: 1" in refused
    release.set()
    for client in busy:
        assert b" 204 " in await client.head()


async def test_a_refused_client_that_still_sends_makes_room_at_once(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuses(_scope: Any, _receive: Any, send: Any) -> None:
        headers = [(b"content-length", b"0"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body"})

    monkeypatch.setattr(lingering, "LINGER_SECONDS", 600.0)
    server: Running = await start(refuses, per_address=1)
    sending = await server.connect(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nabc")
    assert b" 413 " in await sending.head()
    await server.until(lambda connection: connection.transport.is_closing())
    (first,) = server.server.server_state.connections
    other = await server.connect(GET)
    assert b" 413 " in await other.head()
    async with asyncio.timeout(10):
        while first in server.server.server_state.connections:
            await asyncio.sleep(0.005)


async def test_the_health_socket_answers_when_no_connection_is_free(start: Start) -> None:
    server: Running = await start(per_address=1)
    await server.connect()
    await server.until_open(1)
    client = await server.connect_to_health_socket()
    client.send(GET)
    assert b" 200 " in await client.head()
    assert server.open == 1
    assert stat.S_IMODE(server.health_socket.stat().st_mode) == 0o600


async def test_a_socket_that_an_ended_server_left_is_replaced(start: Start) -> None:
    first: Running = await start()
    first.server.servers[-1].close()
    await asyncio.sleep(0)
    assert await start()


async def test_a_websocket_counts_until_it_ends(start: Start) -> None:
    server: Running = await start()
    client = await server.connect(UPGRADE)
    assert b" 101 " in await client.head()
    assert server.open == 1
    client.close()
    await server.until_open(0)


async def test_a_websocket_is_not_closed_to_make_room(start: Start) -> None:
    server: Running = await start(per_address=1)
    client = await server.connect(UPGRADE)
    assert b" 101 " in await client.head()
    other = await server.connect(GET)
    assert (await other.rest()).startswith(b"HTTP/1.1 503 ")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("sent", [b"", b"\r\n", b"GET /heal"])
async def test_a_connection_without_a_whole_head_is_closed(start: Start, sent: bytes) -> None:
    server: Running = await start()
    client = await server.connect(sent)
    if sent == b"GET /heal":
        await server.until(lambda connection: connection._is_incomplete)
    answer = await server.close_slow_until(asyncio.create_task(client.rest()))
    assert (b"HTTP/1.1 408 " in answer) == (sent == b"GET /heal")


@pytest.mark.usefixtures("impatient")
async def test_blank_lines_between_requests_keep_no_connection_open(start: Start) -> None:
    server: Running = await start()
    client = await server.connect(GET)
    await client.head()
    client.send(b"\r\n")
    await server.until(lambda connection: connection._head_since is not None)
    await server.close_slow_until(asyncio.create_task(client.rest()))


async def test_a_head_that_trickles_is_closed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "HEAD_SECONDS", 0.05)
    server: Running = await start()
    client = await server.connect(GET[:-2])

    async def trickle() -> None:
        while True:
            client.send(b"a: b\r\n")
            await asyncio.sleep(0.005)

    trickling = asyncio.create_task(trickle())
    answer = await server.close_slow_until(asyncio.create_task(client.rest()))
    trickling.cancel()
    assert answer.startswith(b"HTTP/1.1 408 ")


async def test_a_body_that_trickles_is_closed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "BODY_SECONDS", 0.05)
    monkeypatch.setattr(http, "BODY_BYTES_PER_SECOND", 2**20)
    server: Running = await start()
    client = await server.connect(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")

    async def trickle() -> None:
        while True:
            client.send(b"a")
            await asyncio.sleep(0.005)

    trickling = asyncio.create_task(trickle())
    answer = await server.close_slow_until(asyncio.create_task(client.rest()))
    trickling.cancel()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"bytes per second" in answer


@pytest.mark.usefixtures("impatient")
async def test_a_client_that_reads_nothing_is_disconnected(start: Start) -> None:
    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": bytes(2**20), "more_body": True})

    server: Running = await start(endless)
    client = await server.connect(GET)
    client._reader._limit = 1  # type: ignore[attr-defined]  # stop to read
    async with asyncio.timeout(10):
        while server.open:
            await server.server.close_slow()
            await asyncio.sleep(0.01)
