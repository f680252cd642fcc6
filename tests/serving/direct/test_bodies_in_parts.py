"""Bodies that arrive in parts, and the ends of clients and servers meanwhile."""

import asyncio
import json

import pytest

from tests.serving.direct.conftest import Serving
from tests.serving.direct.test_direct_http import ONE, Client, request, without_date
from transport.http import close_slow

LENGTH = len(json.dumps(ONE))


@pytest.fixture
async def client(serving: Serving) -> Client:
    reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)  # type: ignore[attr-defined]
    return Client(reader, writer)


async def test_a_head_in_two_parts_and_an_older_version_are_left_to_the_application(
    serving: Serving, client: Client
) -> None:
    await client.ask(request())
    client.writer.write(request()[:10])
    while not any(one._is_incomplete for one in serving.connections):
        await asyncio.sleep(0)
    head, _ = await client.ask(request()[10:])
    assert head.startswith(b"HTTP/1.1 200 ")
    await client.ask(request().replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert serving.direct == 0


async def send_parts(serving: Serving, client: Client, *cuts: int) -> bytes:
    """Send a request with the known head up to each cut, one after the other; return the rest."""
    content = request()
    begin = 0
    for end in (len(content) + cut for cut in cuts):
        client.writer.write(content[begin:end])
        begin = end
        while sum(len(data) for one in serving.connections for data in one._parts) < end:
            await asyncio.sleep(0)
    return content[begin:]


@pytest.mark.parametrize("cuts", [(-5,), (-LENGTH,), (-LENGTH, -3)])
async def test_a_body_in_parts_is_answered_directly(
    serving: Serving, client: Client, cuts: tuple[int, ...]
) -> None:
    usual = await client.ask(request())
    direct = await client.ask(await send_parts(serving, client, *cuts))
    assert serving.direct == 1
    assert without_date(usual) == without_date(direct)


async def test_the_head_is_known_before_the_first_body_has_arrived(serving: Serving, client: Client) -> None:
    client.writer.write(request()[:-5])
    while not any(one._known for one in serving.connections):
        await asyncio.sleep(0)
    await client.ask(request()[-5:])
    assert serving.direct == 0
    await client.ask(request())
    assert serving.direct == 1


async def test_a_body_that_takes_long_is_left_to_the_application(serving: Serving, client: Client) -> None:
    await client.ask(request())
    rest = await send_parts(serving, client, -5)
    close_slow(serving.connections)
    assert [one._is_incomplete for one in serving.connections] == [True]
    head, _ = await client.ask(rest)
    assert head.startswith(b"HTTP/1.1 200 ")
    assert serving.direct == 0


async def test_a_request_behind_a_body_in_parts_is_answered_after_it(
    serving: Serving, client: Client
) -> None:
    await client.ask(request())
    rest = await send_parts(serving, client, -5)
    client.writer.write(rest + request({"instances": [[7, 0, 0, 0]]}))
    found = [json.loads((await client.response())[1])["predictions"][0][0] for _ in range(2)]
    assert found == [2, 14]


async def test_a_server_that_shuts_down_reads_a_body_in_parts_to_its_end(
    serving: Serving, client: Client
) -> None:
    await client.ask(request())
    rest = await send_parts(serving, client, -5)
    for connection in serving.connections:
        connection.shutdown()
    head, _ = await client.ask(rest)
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close\r\n" in head


async def test_a_client_that_leaves_inside_a_body_is_forgotten(serving: Serving, client: Client) -> None:
    await client.ask(request())
    await send_parts(serving, client, -5)
    client.writer.transport.abort()
    async with asyncio.timeout(30):
        while serving.connections:
            await asyncio.sleep(0.01)


async def test_requests_that_are_sent_ahead_are_answered_in_order(serving: Serving, client: Client) -> None:
    await client.ask(request())
    serving.child.is_holding = True
    serving.child.sent.clear()
    client.writer.write(request({"instances": [[1, 0, 0, 0]]}))
    await serving.child.sent.wait()
    for value in (2, 3):
        client.writer.write(request({"instances": [[value, 0, 0, 0]]}))
        await client.writer.drain()
    serving.child.is_holding = False
    serving.child.answer()
    found = [json.loads((await client.response())[1])["predictions"][0][0] for _ in range(3)]
    assert found == [2, 4, 6]
    assert serving.direct >= 1
