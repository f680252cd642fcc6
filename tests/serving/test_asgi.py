"""Reading a request's body, its deadline, and the disconnection of its client."""

import asyncio
import time
from typing import Any

import pytest

from workers.serving.asgi import Request
from workers.serving.errors import BadRequest, BodyTooLarge, ClientGone


def request(*messages: dict[str, Any], **headers: str) -> Request:
    coming = iter(messages)

    async def receive() -> dict[str, Any]:
        try:
            return next(coming)
        except StopIteration:
            return await asyncio.Future()  # a client that waits quietly

    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"method": "POST", "raw_path": b"/", "headers": named}, receive)


def part(body: bytes, *, more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


LEAVES = {"type": "http.disconnect"}


async def test_a_body_may_come_in_parts() -> None:
    assert await request(part(b"ab", more=True), part(b"c", more=False)).body(3) == b"abc"


async def test_a_body_that_is_too_long_is_refused_as_early_as_possible() -> None:
    with pytest.raises(BodyTooLarge, match="has 4 bytes"):
        await request(content_length="4").body(3)
    with pytest.raises(BodyTooLarge):
        await request(part(b"abcd", more=False)).body(3)
    with pytest.raises(BodyTooLarge):
        await request(part(b"ab", more=True), part(b"cd", more=True)).body(3)


async def test_a_client_that_disconnects_while_sending_is_noticed() -> None:
    with pytest.raises(ClientGone):
        await request(part(b"ab", more=True), LEAVES).body(10)


async def test_a_client_that_disconnects_while_waiting_is_noticed() -> None:
    assert await request(LEAVES).disconnected(until=time.monotonic() + 10)
    assert not await request().disconnected(until=time.monotonic() + 0.01)


async def test_the_deadline_is_the_callers_up_to_the_servers_limit() -> None:
    asked = request(x_request_timeout_ms="250")
    assert asked.deadline(30) == asked.arrived + 0.25
    assert request(x_request_timeout_ms="1e9").deadline(30) - time.monotonic() <= 30
    for nonsense in ("0", "-1", "nan", "inf", "soon"):
        with pytest.raises(BadRequest, match="positive number"):
            request(x_request_timeout_ms=nonsense).deadline(30)
