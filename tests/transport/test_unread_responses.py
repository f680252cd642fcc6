"""Responses that their clients do not read keep no place, no thread and no memory."""

import asyncio
from typing import Any

import pytest

from tests.transport.conftest import GET, Client, Running, Start
from transport.http import MAX_PIPELINED
from transport.lingering import LingeringTransport
from transport.slow_readers import WRITE_BYTES_PER_SECOND, WRITE_SECONDS, ReadingRate

# More than the kernel takes of a response that is not read.
LARGE = 32 * 2**20
CLOSING = GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")


class Large:
    """Answers each request with a large body, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.count += 1
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % LARGE)]}
        )
        await send({"type": "http.response.body", "body": bytes(LARGE)})


async def connect_without_reading(server: Running, data: bytes) -> Client:
    client = await server.connect(data)
    client._writer.transport.pause_reading()  # type: ignore[attr-defined]
    return client


def is_unread(connection: Any) -> bool:
    return connection.transport.get_write_buffer_size() > 0


async def until_closed(server: Running, connection: Any) -> None:
    async with asyncio.timeout(10):
        while connection in server.server.server_state.connections:
            await asyncio.sleep(0.005)


async def test_a_connection_with_an_unread_response_is_really_closed_to_make_room(start: Start) -> None:
    server: Running = await start(Large(), per_address=1)
    await connect_without_reading(server, GET)
    await server.until(is_unread)
    [unread] = server.server.server_state.connections
    client = await server.connect(GET)
    assert b" 200 " in await client.head()
    await until_closed(server, unread)


@pytest.mark.usefixtures("impatient")
async def test_a_connection_does_not_wait_without_end_for_its_client_to_read_the_rest(start: Start) -> None:
    server: Running = await start(Large())
    await connect_without_reading(server, CLOSING)
    await server.until(lambda connection: connection.transport.is_closing())
    async with asyncio.timeout(10):
        while server.open:
            await server.server.close_slow()
            await asyncio.sleep(0.01)


async def test_a_request_is_answered_once_the_response_before_it_is_read(start: Start) -> None:
    application = Large()
    server: Running = await start(application, per_address=1)
    client = await connect_without_reading(server, GET * 2)
    await server.until(lambda connection: connection._held is not None)
    assert application.count == 1
    client._writer.transport.resume_reading()  # type: ignore[attr-defined]
    for _ in range(2):
        assert b" 200 " in await client.head()
        await client._reader.readexactly(LARGE)
    assert application.count == 2


async def test_a_request_that_is_held_back_makes_room_for_others(start: Start) -> None:
    server: Running = await start(Large(), per_address=1)
    await connect_without_reading(server, GET * 2)
    await server.until(lambda connection: connection._held is not None)
    client = await server.connect(GET)
    assert b" 200 " in await client.head()


async def test_few_requests_of_one_connection_may_wait(start: Start) -> None:
    started = 0

    async def waits(scope: Any, receive: Any, send: Any) -> None:
        nonlocal started
        started += 1
        await receive()
        await receive()

    server: Running = await start(waits)
    client = await server.connect(GET * 5000)
    answer = await client.rest()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert f"More than {MAX_PIPELINED} requests wait".encode() in answer
    await server.until_open(0)
    assert started <= 1


async def test_as_many_requests_as_may_wait_are_answered_in_order(start: Start) -> None:
    server: Running = await start()
    posts = [
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (size, b"a" * size)
        for size in range(MAX_PIPELINED)
    ]
    client = await server.connect(b"".join(posts) + CLOSING)
    bodies = [
        response.partition(b"\r\n\r\n")[2] for response in (await client.rest()).split(b"HTTP/1.1 200 OK")[1:]
    ]
    assert bodies == [*(b"%d" % size for size in range(MAX_PIPELINED)), b"0"]


async def test_a_disconnection_ends_the_request_that_is_answered_and_those_that_wait(start: Start) -> None:
    received: asyncio.Queue[str] = asyncio.Queue()
    started = 0

    async def until_disconnected(scope: Any, receive: Any, send: Any) -> None:
        nonlocal started
        started += 1
        await received.put((await receive())["type"])
        await received.put((await receive())["type"])

    server: Running = await start(until_disconnected)
    client = await server.connect(GET * 3)
    async with asyncio.timeout(10):
        assert await received.get() == "http.request"
        client.close()
        assert await received.get() == "http.disconnect"
    await server.until_open(0)
    assert started == 1


class Aborted:
    """A uvloop transport after its connection was aborted."""

    def is_closing(self) -> bool:
        return True

    def write(self, data: bytes) -> None:
        raise RuntimeError("unable to perform operation; the handler is closed")


async def test_a_response_to_an_aborted_connection_is_dropped() -> None:
    aborted: Any = Aborted()
    transport = LingeringTransport(aborted, asyncio.get_running_loop(), lambda: False)
    transport.write(b"late")
    assert transport.written == 0


class Written:
    """A transport to which bytes were written; some were read."""

    def __init__(self) -> None:
        self.written = self.read = 0

    def get_write_buffer_size(self) -> int:
        return self.written - self.read


def test_a_client_that_trickles_through_a_response_is_too_slow() -> None:
    transport, rate = Written(), ReadingRate()
    transport.written = 10 * 2**20
    slow = []
    for second in range(200):
        transport.read += WRITE_BYTES_PER_SECOND // 2
        slow.append(rate.is_too_slow(transport, float(second)))
    assert slow.index(True) == int(WRITE_SECONDS) + 1


def test_a_client_that_reads_steadily_is_not_too_slow() -> None:
    transport, rate = Written(), ReadingRate()
    transport.written = 10 * 2**20
    for second in range(600):
        transport.read += 2 * WRITE_BYTES_PER_SECOND
        assert not rate.is_too_slow(transport, float(second))


def test_a_client_that_stops_after_it_read_much_is_too_slow() -> None:
    transport, rate = Written(), ReadingRate()
    transport.written, transport.read = 2**40, 2**39
    assert not rate.is_too_slow(transport, 0.0)
    transport.read += 2**38
    assert not rate.is_too_slow(transport, WRITE_SECONDS + 1)
    assert rate.is_too_slow(transport, 2 * WRITE_SECONDS + 3)


def test_the_time_begins_again_once_everything_is_read() -> None:
    transport, rate = Written(), ReadingRate()
    for second in range(0, 600, 20):
        transport.written += 10
        assert not rate.is_too_slow(transport, float(second))
        transport.read = transport.written
        assert not rate.is_too_slow(transport, second + 10.0)
