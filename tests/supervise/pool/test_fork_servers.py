"""Which fork servers a node keeps. The servers are fakes."""

import asyncio
import errno
import json
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from jobs.messages.fork import STREAMS, ForkRequest
from workers.runner import forkserver
from workers.runner.environment import Environment
from workers.runner.forkserver import runner_server
from workers.supervise.pool import fork_servers as fork_servers_module
from workers.supervise.pool.fork_servers import MAX_FORK_SERVERS, ForkServers

ONE = Environment(threads=1)
OPEN = Path("/proc/self/fd")


class FakeForkServer:
    """Records all instances in `servers`; starts wait until `imports` is set."""

    servers: list["FakeForkServer"]
    imports: asyncio.Event

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Long ago on any machine: the monotonic clock of one that has just booted is below an hour.
        self.alive, self.idle, self.last_used = True, True, len(self.servers) - 1e6

    @classmethod
    async def start(cls, folder: Path, *_: Any, **__: Any) -> "FakeForkServer":
        server = cls(folder)
        cls.servers.append(server)
        await cls.imports.wait()
        return server

    async def end(self) -> None:
        self.alive = False
        await asyncio.sleep(0)


@pytest.fixture
async def fork_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ForkServers]:
    FakeForkServer.servers, FakeForkServer.imports = [], asyncio.Event()
    FakeForkServer.imports.set()
    monkeypatch.setattr(fork_servers_module, "RunnerForkServer", FakeForkServer)
    node_servers = ForkServers(tmp_path / "runners", 3600.0, "workers.runner")
    yield node_servers
    await node_servers.close()


def started_servers() -> list[FakeForkServer]:
    return FakeForkServer.servers


async def test_concurrent_requests_for_one_environment_share_a_server(
    fork_servers: ForkServers,
) -> None:
    FakeForkServer.imports.clear()
    waiting = [asyncio.create_task(fork_servers.server_for(ONE)) for _ in range(3)]
    await asyncio.sleep(0)
    await fork_servers.sweep()  # one that still imports is not idle
    waiting.pop().cancel()  # nor does it stop when one of them goes
    FakeForkServer.imports.set()
    assert {id(server) for server in await asyncio.gather(*waiting)} == {id(started_servers()[0])}
    assert started_servers()[0].alive


async def test_concurrent_requests_replace_a_dead_server_once(fork_servers: ForkServers) -> None:
    first = await fork_servers.server_for(ONE)
    assert first is not None
    started_servers()[0].alive = False
    again = await asyncio.gather(*(fork_servers.server_for(ONE) for _ in range(3)))
    assert len(started_servers()) == 2
    assert {id(server) for server in again} == {id(started_servers()[1])}


async def test_an_idle_server_ends_after_the_idle_time(fork_servers: ForkServers) -> None:
    await fork_servers.server_for(ONE)
    started_servers()[0].idle = False
    await fork_servers.sweep()
    assert started_servers()[0].alive
    started_servers()[0].idle = True
    await fork_servers.sweep()
    assert not started_servers()[0].alive
    assert not started_servers()[0].folder.exists()


async def test_beyond_the_limit_the_longest_idle_server_is_ended_and_none_with_a_runner(
    fork_servers: ForkServers,
) -> None:
    for threads in range(1, MAX_FORK_SERVERS + 1):
        await fork_servers.server_for(Environment(threads))
    started_servers()[0].idle = False
    assert await fork_servers.server_for(Environment(99)) is not None
    assert [server.alive for server in started_servers()] == [True, False, *[True] * (MAX_FORK_SERVERS - 1)]
    for server in started_servers():
        server.idle = False
    assert await fork_servers.server_for(Environment(100)) is None


async def test_a_failed_start_is_retried_after_the_next_sweep(
    fork_servers: ForkServers, caplog: pytest.LogCaptureFixture
) -> None:
    fork_servers.folder.write_text("in the way")
    assert await fork_servers.server_for(ONE) is None
    fork_servers.folder.unlink()
    assert await fork_servers.server_for(ONE) is None
    assert caplog.text.count("without a fork server") == 1
    await fork_servers.sweep()
    server: object = await fork_servers.server_for(ONE)
    assert server is started_servers()[0]


async def test_closing_does_not_wait_for_imports(fork_servers: ForkServers) -> None:
    FakeForkServer.imports.clear()
    waiting = asyncio.create_task(fork_servers.server_for(ONE))
    while not started_servers():
        await asyncio.sleep(0)
    (server,) = started_servers()
    assert server.folder.exists()
    await asyncio.wait_for(fork_servers.close(), 5)
    assert await waiting is None
    assert not server.folder.exists()


def test_a_failed_fork_is_reported_and_the_server_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_fork() -> int:
        raise BlockingIOError(errno.EAGAIN, "too many processes")

    monkeypatch.setattr(os, "fork", no_fork)
    # The flag would last beyond this test, and this process does not wait for orphans.
    monkeypatch.setattr(forkserver, "become_subreaper", lambda: None)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, Path(os.devnull).open() as null:
        server = runner_server(theirs)
        before = len(list(OPEN.iterdir()))
        request = ForkRequest(folder="/", environment={}, module="none").model_dump_json().encode()
        for sent in (request, b"nonsense"):
            socket.send_fds(ours, [sent], [null.fileno()] * len(STREAMS))
            assert server._answer()
        assert [json.loads(ours.recv(1000)) for _ in range(2)] == [
            {"failed": errno.EAGAIN},
            {"failed": errno.EIO},
        ]
        assert len(list(OPEN.iterdir())) == before
