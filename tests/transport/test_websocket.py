"""WebSockets before the login, and those that break the protocol."""

import asyncio
import logging
from typing import Any

import pytest

from tests.transport.conftest import GET, Running, Start, echo
from tests.transport.test_connections import UPGRADE
from transport.websocket import MAX_FRAGMENTS

MASKED_EMPTY = b"\x80\x00\x00\x00\x00"


async def test_a_socket_whose_client_does_not_answer_the_close_makes_room(start: Start) -> None:
    async def refuses(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "websocket":
            await echo(scope, receive, send)
            return
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": 4401})
        while (await receive())["type"] != "websocket.disconnect":
            pass

    server: Running = await start(refuses, per_address=1)
    silent = await server.connect(UPGRADE)
    assert b" 101 " in await silent.head()
    assert await silent._reader.readexactly(4) == b"\x88\x02\x11\x31"
    client = await server.connect(GET)
    assert b" 200 " in await client.head()
    assert await silent.rest() == b""


async def test_a_message_of_too_many_fragments_closes_the_socket(start: Start) -> None:
    server: Running = await start()
    client = await server.connect(UPGRADE)
    await client.head()
    client.send(b"\x01" + MASKED_EMPTY + (b"\x00" + MASKED_EMPTY) * (MAX_FRAGMENTS + 10))
    closed = await client.rest()
    assert closed.startswith(b"\x88")
    assert int.from_bytes(closed[2:4]) == 1009


async def test_frames_before_the_answer_to_the_handshake_close_the_connection(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    ended = asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        assert (await receive())["type"] == "websocket.connect"
        assert (await receive())["type"] == "websocket.disconnect"
        ended.set()

    server: Running = await start(slow)
    client = await server.connect(UPGRADE)
    await server.until(lambda connection: hasattr(connection, "handshake_initiated"))
    # An opcode that does not exist.
    client.send(b"\x83" + MASKED_EMPTY)
    async with asyncio.timeout(10):
        await ended.wait()
    await server.until_open(0)
    assert not [
        record for record in caplog.records if record.levelno >= logging.ERROR and record.name == "asyncio"
    ]
