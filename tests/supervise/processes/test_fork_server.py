"""Runners forked by a fork server that has imported JAX and Keras."""

import asyncio
import errno
import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import pytest_asyncio

from jobs.messages.control import Start
from tests.supervise.conftest import FAKE, until
from workers.confinement.forking import client
from workers.confinement.forking.sandbox_forks import SandboxForks
from workers.confinement.sandbox.launch import spawn
from workers.runner.environment import Environment
from workers.supervise.pool.fork_servers import ForkServers
from workers.supervise.pool.runner_pool import RunnerKey, RunnerPool
from workers.system.secret_masking import SecretMasker

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="fork servers run on Linux alone")
KEY = RunnerKey(1, Environment(threads=1))


with_shared_server = pytest.mark.asyncio(loop_scope="module")
"""A new fork server imports all libraries, so tests share one until a test ends it."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def servers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ForkServers]:
    fork_servers = ForkServers(tmp_path_factory.mktemp("servers"), 60.0, FAKE)
    yield fork_servers
    await fork_servers.close()


@pytest_asyncio.fixture(loop_scope="module")
async def pool(tmp_path: Path, servers: ForkServers) -> AsyncIterator[RunnerPool]:
    runner_pool = RunnerPool(tmp_path / "runners", 2, 60.0, 2**30, SecretMasker(), FAKE, servers)
    yield runner_pool
    for runner in list(runner_pool._busy):
        await runner_pool.discard(runner)


def facts(pid: int) -> dict[str, object]:
    process = psutil.Process(pid)
    files = "".join(part.path for part in process.memory_maps())
    return {
        "name": process.name(),
        "session": os.getsid(pid),
        "home": process.cwd(),
        "has": [name for name in ("jaxlib", "pyarrow", "pandas", "sklearn") if f"/{name}/" in files],
        "parent": process.ppid(),
    }


@with_shared_server
async def test_forked_runners_have_their_imports_and_their_own_sessions(pool: RunnerPool) -> None:
    first, second = await asyncio.gather(pool.take(KEY), pool.take(KEY))
    server = psutil.Process(first.pid).ppid()
    assert psutil.Process(server).name() == "ty-forkserver"
    # A fork has none of the other threads of its parent.
    assert psutil.Process(server).num_threads() == 1
    for runner in (first, second):
        assert facts(runner.pid) == {
            "name": "ty-runner",
            "session": runner.pid,
            "home": str(runner.folder),
            "has": ["jaxlib", "pyarrow", "pandas"],
            "parent": server,
        }
    # A signal to all processes of the service is for the worker: runners would end with their fork server.
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(server, number)
    # So do the processes of models with code, beside a task with the same environment.
    starter = await pool.sandbox_starter(KEY.environment)
    assert isinstance(starter, SandboxForks)
    assert starter.server.pid == server
    second.signal(signal.SIGTERM)
    assert await asyncio.wait_for(second.ended, 10) == -signal.SIGTERM
    assert await first.end() == -signal.SIGKILL


def has_result(lines: list[bytes]) -> bool:
    return any(b'"result"' in line for line in lines)


@with_shared_server
async def test_a_forked_runner_has_the_environment_of_a_spawned_one_and_serves_tasks(
    pool: RunnerPool, tmp_path: Path
) -> None:
    task = tmp_path / "task.json"
    task.write_text(json.dumps({"kind": "profile", "bundled": json.dumps([["environment"]])}))
    seen = []
    for needs_jax in (True, False):
        runner = await pool.take(KEY, needs_jax=needs_jax)
        heard: list[bytes] = []
        runner.set_listener(heard.append)
        runner.send(Start(task=str(task)))
        await until(partial(has_result, heard))
        variables = json.loads((runner.folder / "stdout.log").read_text())
        assert variables.pop("HOME") == str(runner.folder)
        seen.append(variables)
    assert seen[0] == seen[1]


@with_shared_server
async def test_a_child_that_cannot_be_watched_is_ended_and_the_fork_fails_at_once(
    pool: RunnerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await pool.take(KEY)
    server = psutil.Process(first.pid).parent()
    assert server is not None

    open_pidfd, failures = os.pidfd_open, [OSError(errno.EMFILE, "Too many open files")]

    def fail_once(pid: int) -> int:
        if failures:
            raise failures.pop()
        return open_pidfd(pid)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pidfd_open", fail_once)
        # Otherwise the fork would fail only after this time, and the server would be killed.
        patch.setattr(client, "FORK_TIMEOUT", 600.0)
        spawned = await asyncio.wait_for(pool.take(KEY), 60)
    assert psutil.Process(spawned.pid).ppid() == os.getpid()
    await until(lambda: [child.pid for child in server.children()] == [first.pid])
    assert first.alive


@with_shared_server
async def test_runners_die_with_their_fork_server_and_another_server_is_started(
    pool: RunnerPool,
) -> None:
    runner = await pool.take(KEY)
    server = psutil.Process(runner.pid).parent()
    assert server is not None
    server.kill()
    assert await asyncio.wait_for(runner.ended, 10) == -signal.SIGKILL
    await pool.discard(runner)
    again = await pool.take(KEY)
    assert psutil.Process(again.pid).ppid() != server.pid
    assert psutil.Process(psutil.Process(again.pid).ppid()).name() == "ty-forkserver"


@with_shared_server
async def test_a_suspended_fork_server_is_killed_and_its_dead_runner_is_detected(
    pool: RunnerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Before the timeouts are short: on a busy machine this fork may take longer.
    runner = await pool.take(KEY)
    monkeypatch.setattr(client, "FORK_TIMEOUT", 0.3)
    monkeypatch.setattr(client, "EXIT_REPORT_TIMEOUT", 0.3)
    server = psutil.Process(runner.pid).parent()
    assert server is not None
    server.suspend()
    os.killpg(runner.pid, signal.SIGKILL)
    assert await asyncio.wait_for(runner.ended, 10) == -signal.SIGKILL
    other = await pool.take(KEY)
    assert psutil.Process(other.pid).ppid() == os.getpid()
    await until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE)


@with_shared_server
async def test_runners_without_jax_are_spawned(pool: RunnerPool) -> None:
    runner = await pool.take(KEY, needs_jax=False)
    assert psutil.Process(runner.pid).ppid() == os.getpid()


@with_shared_server
async def test_without_a_fork_server_runners_are_spawned(
    pool: RunnerPool, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Environment(threads=1, platform="\0")
    runner = await pool.take(RunnerKey(1, broken))
    assert psutil.Process(runner.pid).ppid() == os.getpid()
    assert await pool.sandbox_starter(broken) is spawn
    assert "without a fork server" in caplog.text


@pytest.fixture
async def unheard() -> AsyncIterator[list[str]]:
    """Return the errors that asyncio logs because no one awaited them."""
    errors: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: errors.append(context["message"]))
    yield errors
    loop.set_exception_handler(None)


@pytest.fixture
async def mute() -> AsyncIterator[tuple[client.ForkServer, socket.socket]]:
    """Return a server's client, and the socket through which the test answers for the server."""

    async def ended() -> int:
        return 0

    process: Any = SimpleNamespace(returncode=None, pid=0, kill=lambda: None, wait=ended)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    with ours, theirs:
        yield client.ForkServer(process, ours, None), theirs


async def test_a_fork_that_is_no_longer_awaited_is_ended_and_leaves_no_error_behind(
    unheard: list[str], mute: tuple[client.ForkServer, socket.socket]
) -> None:
    server, theirs = mute
    theirs.send(b'{"ready": true}')
    await server.imported()
    with pytest.raises(TimeoutError, match="did not answer within 0 s"):
        await server.fork(b"{}", [], timeout=0.01)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await server.fork(b"{}", [])
    late = [subprocess.Popen(["sleep", "60"]) for _ in range(2)]
    for child in late:
        theirs.send(json.dumps({"forked": child.pid}).encode())
    await until(lambda: all(child.poll() is not None for child in late))
    theirs.close()
    await until(lambda: not server.alive)
    gc.collect()
    assert unheard == []


async def test_imports_that_take_too_long_leave_no_error_behind(
    unheard: list[str],
    mute: tuple[client.ForkServer, socket.socket],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "IMPORT_TIMEOUT", 0.01)
    with pytest.raises(TimeoutError, match="imports took more than"):
        await mute[0].imported()
    assert not mute[0].alive
    mute[0]._ready = asyncio.get_running_loop().create_future()
    gc.collect()
    assert unheard == []
