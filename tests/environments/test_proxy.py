"""The proxy connects to the hosts of the index, also through another proxy, and to no others."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.environments.conftest import Server, serving
from workers.confinement.environments.proxy import IndexProxy


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Server]:
    folder = tmp_path / "index"
    folder.mkdir()
    (folder / "page").write_text("contents")
    with serving(folder) as server:
        yield server


def ask(proxy: IndexProxy, request: str) -> bytes:
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as near:
        near.sendall(request.encode())
        answer = b""
        while chunk := near.recv(4096):
            answer += chunk
    return answer


def connect(proxy: IndexProxy, port: int, then: str = "GET /page HTTP/1.0\r\n\r\n") -> bytes:
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as near:
        near.sendall(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        answer = near.recv(4096)
        if b" 200 " in answer:
            near.sendall(then.encode())
            while chunk := near.recv(4096):
                answer += chunk
    return answer


def test_requests_and_tunnels_to_the_index_pass(index: Server) -> None:
    with IndexProxy([("127.0.0.1", index.server_port)], folder=None) as proxy:
        assert ask(proxy, f"GET {index.address}/page HTTP/1.1\r\n\r\n").endswith(b"contents")
        assert connect(proxy, index.server_port).endswith(b"contents")
        assert proxy.refused == []


def test_another_port_of_the_same_host_is_refused_and_remembered(index: Server, tmp_path: Path) -> None:
    with serving(tmp_path) as other, IndexProxy([("127.0.0.1", index.server_port)], folder=None) as proxy:
        assert b" 403 " in connect(proxy, other.server_port)
        assert b" 403 " in ask(proxy, f"GET {other.address}/ HTTP/1.1\r\n\r\n")
        assert proxy.refused == ["127.0.0.1"]
        assert other.asked == []


@pytest.mark.parametrize(
    "request_line",
    ["POST {address}/page HTTP/1.1", "GET /page HTTP/1.1", "nonsense", "GET ftp://x/ HTTP/1.1"],
)
def test_other_requests_are_refused(index: Server, request_line: str) -> None:
    with IndexProxy([("127.0.0.1", index.server_port)], folder=None) as proxy:
        line = request_line.format(address=index.address)
        assert ask(proxy, f"{line}\r\n\r\n").split()[1] in (b"400", b"403", b"405")
        assert index.asked == []


def test_the_host_of_a_request_is_that_of_its_address(index: Server) -> None:
    with IndexProxy([("127.0.0.1", index.server_port)], folder=None) as proxy:
        asked = f"GET {index.address}/page HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n"
        assert ask(proxy, asked).endswith(b"contents")


def test_all_hosts_are_reached_through_the_proxy_of_the_worker(index: Server) -> None:
    allowed = [("127.0.0.1", index.server_port)]
    with IndexProxy(allowed, folder=None) as outer:
        upstream = f"http://name:word@127.0.0.1:{outer.port}"
        with IndexProxy(allowed, folder=None, upstream=upstream) as proxy:
            assert connect(proxy, index.server_port).endswith(b"contents")
    with (
        IndexProxy([], folder=None) as closed,
        IndexProxy(allowed, folder=None, upstream=f"127.0.0.1:{closed.port}") as proxy,
    ):
        assert b" 502 " in connect(proxy, index.server_port)
        assert closed.refused == ["127.0.0.1"]


def test_a_socket_with_a_long_path_works(index: Server, tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    with IndexProxy([("127.0.0.1", index.server_port)], folder=folder):
        assert (folder / IndexProxy.NAME).is_socket()
