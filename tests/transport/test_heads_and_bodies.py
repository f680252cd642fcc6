"""Heads and bodies that trickle, are too large, or have no end."""

import asyncio
import resource
import socket
from typing import Any

import pytest

from tests.transport.conftest import GET, Running, Start
from tests.transport.test_connections import UPGRADE
from transport import admission as admissions
from transport import http, open_files
from transport.admission import Admission


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(GET[:-2] + b"a: b\r\n" * http.MAX_HEADERS + b"\r\n", id="many headers"),
        pytest.param(GET[:-2] + b"a: " + b"b" * http.MAX_HEAD_BYTES + b"\r\n\r\n", id="a long header"),
        pytest.param(b"GET /" + b"a" * http.MAX_HEAD_BYTES + b" HTTP/1.1\r\n\r\n", id="a long address"),
        pytest.param(GET[:-2] + b"a: " + b"b" * 3 * http.MAX_HEAD_BYTES, id="an endless header"),
        pytest.param(GET * 2 + GET[:-2] + b"a: " + b"b" * 3 * http.MAX_HEAD_BYTES, id="after other requests"),
    ],
)
async def test_a_large_head_is_refused(start: Start, head: bytes) -> None:
    server: Running = await start()
    client = await server.connect(head)
    assert b"HTTP/1.1 431 " in await client.rest()


async def test_an_ipv4_client_of_an_ipv6_socket_has_its_ipv4_address(start: Start) -> None:
    async def client_of(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept", "headers": [(b"client", scope["client"][0].encode())]})
            return
        headers = [(b"client", scope["client"][0].encode()), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body"})

    listener = socket.socket(socket.AF_INET6)
    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    # Of all addresses of a socket on `::`, only this one.
    listener.bind(("::ffff:127.0.0.1", 0))
    server: Running = await start(client_of, listener=listener)
    for request in (GET, UPGRADE):
        client = await server.connect(request)
        assert b"\r\nclient: 127.0.0.1\r\n" in await client.head()


async def test_a_length_of_thousands_of_digits_is_refused(start: Start) -> None:
    server: Running = await start()
    client = await server.connect(
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + b"0" * 5000 + b"1\r\n\r\na"
    )
    assert (await client.rest()).startswith(b"HTTP/1.1 400 ")


CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("frames", "status"),
    [
        pytest.param(b"0\r\na: " + b"b" * 3 * http.MAX_HEAD_BYTES, 400, id="an endless trailer"),
        pytest.param(b"0\r\n" + b"a: b\r\n" * 2 * http.MAX_HEADERS, 431, id="many trailers"),
        pytest.param(b"1;" + b"a" * 3 * http.MAX_HEAD_BYTES, 400, id="an endless extension"),
    ],
)
async def test_frames_around_a_body_are_bounded(start: Start, frames: bytes, status: int) -> None:
    server: Running = await start()
    client = await server.connect(CHUNKED + frames)
    assert (await client.rest()).startswith(b"HTTP/1.1 %d " % status)


async def test_small_chunks_and_trailers_are_accepted(start: Start) -> None:
    server: Running = await start()
    client = await server.connect(CHUNKED + b"1\r\na\r\n" * 30_000 + b"0\r\na: b\r\n\r\n")
    assert b" 200 " in await client.head()


async def test_a_client_reads_the_response_that_refuses_its_body(start: Start) -> None:
    async def refuses(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"connection", b"close"), (b"content-length", b"4")]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": b"stop"})

    server: Running = await start(refuses)
    client = await server.connect(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n")
    for _ in range(20):
        client.send(bytes(100_000))
        await asyncio.sleep(0)
    assert (await client.rest()).endswith(b"stop")
    client.close()
    await server.until_open(0)


class Peer:
    """A connection that notes whether it was closed."""

    def __init__(self, peer: str) -> None:
        self.peer, self.is_evicted = peer, False

    def evict(self) -> None:
        self.is_evicted = True


def test_addresses_of_one_ipv6_network_count_together() -> None:
    admission = Admission(max_connections=10, max_per_address=1)
    first, second, other = Peer("2001:db8::1"), Peer("2001:db8::2"), Peer("2001:db8:0:1::1")
    assert all(admission.admit(peer) for peer in (first, second, other))
    assert [peer.is_evicted for peer in (first, second, other)] == [True, False, False]


def test_a_trusted_proxy_has_as_many_connections_as_there_are() -> None:
    admission = Admission(max_connections=3, max_per_address=1, trusted=["10.0.0.0/24"])
    peers = [Peer("10.0.0.7"), Peer("::ffff:10.0.0.7"), Peer("10.0.0.7")]
    assert all(admission.admit(peer) for peer in peers)
    assert not any(peer.is_evicted for peer in peers)
    assert admission.admit(Peer("10.0.0.7"))
    assert [peer.is_evicted for peer in peers] == [True, False, False]


def test_the_group_of_an_address_ends_with_its_last_connection() -> None:
    admission = Admission(max_connections=3, max_per_address=1, trusted=admissions.LOOPBACK)
    for _ in range(3):
        peer = Peer("192.0.2.1")
        admission.admit(peer)
        admission.mark_busy(peer)
        assert not admission.admit(Peer("192.0.2.1"))
        admission.release(peer)
        admission.release(peer)
    assert (admission.count, admission._groups) == (0, {})


def test_the_limit_of_open_files_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"now": (1024, 4096)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: limits.update(now=pair))
    assert open_files.raise_limit() == 4096
    assert limits["now"] == (4096, 4096)
    assert open_files.connections_within(4096, 5000) == 1920
    assert open_files.connections_within(65_536, 4096) == 4096
