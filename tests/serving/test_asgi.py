"""Reading a request's body, its deadline, and its client's disconnection."""

import asyncio
import time
from typing import Any

import pytest

from workers.model_process.errors import (
    BadRequest,
    BodyTooLarge,
    ClientGone,
    DeadlineExceeded,
    NoRoom,
)
from workers.serving.asgi import Request
from workers.serving.bodies.memory import FREE_BYTES, BodyMemory


def request(*messages: dict[str, Any], **headers: str) -> Request:
    coming = iter(messages)

    async def receive() -> dict[str, Any]:
        try:
            return next(coming)
        except StopIteration:
            return await asyncio.Future()  # a client that waits quietly

    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"method": "POST", "raw_path": b"/", "headers": named}, receive)


async def read(sent: Request, limit: int, *, seconds: float = 10, memory: BodyMemory | None = None) -> Any:
    return await sent.body(limit, time.monotonic() + seconds, memory or BodyMemory(2**30))


def part(body: bytes, *, more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


LEAVES = {"type": "http.disconnect"}


async def test_a_body_may_come_in_parts() -> None:
    assert await read(request(part(b"ab", more=True), part(b"c", more=False)), 3) == b"abc"


async def test_a_body_that_is_too_long_is_refused_as_early_as_possible() -> None:
    with pytest.raises(BodyTooLarge, match="has 4 bytes"):
        await read(request(content_length="4"), 3)
    with pytest.raises(BodyTooLarge):
        await read(request(part(b"abcd", more=False)), 3)
    with pytest.raises(BodyTooLarge):
        await read(request(part(b"ab", more=True), part(b"cd", more=True)), 3)


async def test_a_client_that_disconnects_while_sending_is_noticed() -> None:
    with pytest.raises(ClientGone):
        await read(request(part(b"ab", more=True), LEAVES), 10)


async def test_a_body_that_has_not_arrived_at_the_deadline_is_refused() -> None:
    with pytest.raises(DeadlineExceeded):
        await read(request(part(b"ab", more=True)), 10, seconds=0.01)


async def test_bodies_that_together_take_too_much_memory_are_refused() -> None:
    memory = BodyMemory(100)
    first, second = (request(part(bytes(FREE_BYTES + 60), more=True), part(b"a", more=False)) for _ in "ab")
    await read(first, 2**20, memory=memory)
    assert first.held == 61
    with pytest.raises(NoRoom) as refused:
        await read(second, 2**20, memory=memory)
    assert (refused.value.status, refused.value.retry_after) == (429, 1)
    small = request(part(bytes(FREE_BYTES - 1), more=True), part(b"a", more=False))
    assert len(await read(small, 2**20, memory=memory)) == FREE_BYTES
    memory.free(first.held)
    again = request(part(bytes(FREE_BYTES + 60), more=True), part(b"a", more=False))
    assert len(await read(again, 2**20, memory=memory)) == FREE_BYTES + 61


async def test_a_single_body_may_be_larger_than_the_memory_of_all() -> None:
    alone = request(part(bytes(FREE_BYTES + 60), more=True), part(b"a", more=False))
    assert len(await read(alone, 2**20, memory=BodyMemory(1))) == FREE_BYTES + 61


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
