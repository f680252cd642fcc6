"""No runner and no user id is lost when the attempt that asked for a runner ends meanwhile."""

import asyncio
import errno
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NoReturn, cast

import psutil
import pytest

from jobs.messages.sandbox import Level, LevelState
from jobs.messages.task import OwnCode
from tests.supervise.conftest import FAKE, until
from workers.confinement.isolation.access import Isolation, RunnerAccess
from workers.confinement.start import process
from workers.confinement.start.files import ProcessFiles
from workers.runner.environment import Environment
from workers.supervise.limits.sandbox_limits import SandboxLimits
from workers.supervise.pool.fork_servers import ForkServers
from workers.supervise.pool.launcher import RunnerStart, SpawnLauncher
from workers.supervise.pool.runner_pool import RunnerKey, RunnerPool
from workers.supervise.pool.runner_process import RunnerProcess
from workers.supervise.pool.runner_sandbox import SandboxNeeds
from workers.supervise.pool.sandboxes import Sandboxes
from workers.supervise.pool.standby import StandbyKey, Standbys
from workers.system.secret_masking import SecretMasker

KEY = RunnerKey(7, Environment(threads=1), "0")


class FakeAccess:
    """The access for a runner with this process's user."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.is_closed = False

    def grant(self, folder: Path, *, write: bool = True) -> None:
        pass

    def revoke(self, folder: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[RunnerPool]:
    runner_pool = RunnerPool(tmp_path / "runners", 2, 60.0, 2**30, SecretMasker(), FAKE)
    yield runner_pool
    await runner_pool.close()


def pool_with_sandboxes(home: Path, fork_servers: ForkServers | None = None) -> RunnerPool:
    offered = Sandboxes(home / "attempts", have_own_users=False)
    offered.states.set_result((LevelState(level=Level.PROCESS, offered=True),))
    return RunnerPool(home / "runners", 2, 60.0, 2**30, fork_servers=fork_servers, sandboxes=offered)


def key_with_code() -> RunnerKey:
    code = OwnCode(digest="1", minimum=Level.PROCESS, network=False)
    needs = SandboxNeeds(1, code, checkpoints="", compile_cache="", limits=SandboxLimits().run_limits(2**30))
    return KEY._replace(devices=None, sandbox=needs)


async def test_a_start_in_a_sandbox_that_is_cancelled_during_the_imports_leaves_nothing(
    tmp_path: Path,
) -> None:
    asked = asyncio.Event()

    class Importing(ForkServers):
        async def server_for(self, _environment: Environment) -> None:
            asked.set()
            await asyncio.Event().wait()

    pool = pool_with_sandboxes(tmp_path, Importing(tmp_path / "runners", 60.0, FAKE))
    taking = asyncio.create_task(pool.take(key_with_code()))
    await asked.wait()
    taking.cancel()
    await asyncio.wait({taking})
    assert not (tmp_path / "runners").exists()
    await pool.close()


async def test_a_start_in_a_sandbox_that_fails_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(process, "launch", fail)
    pool = pool_with_sandboxes(tmp_path)
    with pytest.raises(BlockingIOError):
        await pool.take(key_with_code())
    assert [*tmp_path.glob("runners/*"), *tmp_path.glob("attempts/own-code/*")] == []
    await pool.close()


async def test_a_start_that_is_cancelled_gives_its_user_id_back(pool: RunnerPool) -> None:
    begun, go_on = threading.Event(), threading.Event()
    accesses: list[FakeAccess] = []

    class SlowIsolation:
        def create_access(self, folder: Path) -> FakeAccess:
            begun.set()
            go_on.wait(30)
            accesses.append(FakeAccess(folder))
            return accesses[0]

    pool.isolation = cast("Isolation", SlowIsolation())
    taking = asyncio.create_task(pool.take(KEY, needs_jax=False))
    await until(begun.is_set)
    taking.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await taking
    await until(lambda: accesses and accesses[0].is_closed)


async def test_an_idle_runner_is_ended_completely_although_who_asked_for_it_is_cancelled(
    pool: RunnerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = await pool.take(KEY, needs_jax=False)
    await pool.give_back(runner, KEY)
    begun, go_on, end = asyncio.Event(), asyncio.Event(), pool._end

    async def slow_end(ended: RunnerProcess) -> None:
        begun.set()
        await go_on.wait()
        await end(ended)

    monkeypatch.setattr(pool, "_end", slow_end)
    # Another job gets the device of the idle runner, which therefore has to end.
    taking = asyncio.create_task(pool.take(KEY._replace(root=8), needs_jax=False))
    await begun.wait()
    taking.cancel()
    await asyncio.wait({taking})
    go_on.set()
    await until(lambda: not runner.folder.exists())
    assert not psutil.pid_exists(runner.pid)


async def test_a_standby_that_would_keep_its_compile_cache_is_ended(pool: RunnerPool, tmp_path: Path) -> None:
    async def fork(_key: StandbyKey) -> RunnerProcess:
        runner = await pool._launch(SpawnLauncher(FAKE), None)
        runner.access = cast("RunnerAccess", FakeAccess(runner.folder))
        FakeAccess(runner.folder).home.mkdir()
        return runner

    pool.standbys = Standbys(fork, pool._end)
    assert await pool.standbys.add(KEY.standby_key(), cache=tmp_path / "cache")
    runner = pool.standbys.all[0].runner
    assert await pool.standbys.take(KEY.standby_key()) is None
    assert not psutil.pid_exists(runner.pid)
    assert pool.standbys.all == []


async def test_a_start_without_free_descriptors_keeps_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe, pipes = os.pipe, list[Any]()

    def second_fails() -> tuple[int, int]:
        if pipes:
            raise OSError(errno.EMFILE, "Too many open files")
        pipes.append(pipe())
        return cast("tuple[int, int]", pipes[0])

    descriptors = Path("/proc/self/fd")
    before = {file.name for file in descriptors.iterdir()}
    monkeypatch.setattr(os, "pipe", second_fails)
    with pytest.raises(OSError, match="Too many open files"):
        await RunnerProcess.start(
            ProcessFiles(tmp_path),
            SpawnLauncher(FAKE),
            start=RunnerStart(tmp_path, {}),
            masker=SecretMasker(),
        )
    assert {file.name for file in descriptors.iterdir()} == before


async def test_a_runner_that_could_not_be_started_leaves_no_folder(
    pool: RunnerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="Too many open files"):
        patch.setattr(os, "pipe", fail)
        await pool.take(KEY)
    assert list(pool.folder.iterdir()) == []
