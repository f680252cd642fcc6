import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import psutil
import pytest
from django.db import connection

from jobs.store import LocalStore
from tests.supervise.conftest import FAKE, QUICK, Bench, FakeRepository
from webapp.ops.parent_death import argv_dying_with_parent
from workers.confinement.isolation.access import Isolation
from workers.confinement.isolation.check import Folders, find_isolation
from workers.confinement.isolation.users import UidRange
from workers.node import node_folder
from workers.supervise.attempt.devices import Devices
from workers.supervise.attempt.node_context import NodeContext
from workers.supervise.pool.runner_pool import RunnerPool
from workers.system.environment import runner_environment

UIDS = UidRange(60600, 61100)


def make_home(root: Path) -> Folders:
    """Return an installation's folders with keys, a database and an artifact."""
    home, store = root / "home", LocalStore(root / "home" / "artifacts")
    home.chmod(0o700)
    for name in ("secret.key", "release.key", "db.sqlite3"):
        (home / name).write_text("secret")
    (home / "upload").write_text("a,b\n1,2\n")
    store.put(home / "upload")
    node = home / "nodes" / "host"
    shared = (node / "attempts", store.checkpoint_root, home / "compile-cache")
    return Folders(home, store.root, home / node_folder.USER_LOCKS, node / "runners", shared)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return make_home(tmp_path)


def isolate(folders: Folders) -> Isolation:
    isolation, state = find_isolation(folders, UIDS, runner_environment(folders.home))
    assert isolation is not None, state.message
    return isolation


@pytest.fixture
async def bench(folders: Folders) -> AsyncIterator[Bench]:
    """Runs attempts on runners with their own users."""
    folders.runners.mkdir(mode=0o700, parents=True)
    repository = FakeRepository({}, LocalStore(folders.store))
    pool = RunnerPool(folders.runners, 2, 60.0, 2**30, module=FAKE, isolation=isolate(folders))
    attempts, checkpoints, caches = folders.shared
    node = NodeContext(
        repository, pool, Devices(), QUICK, attempts, checkpoints, caches,
        threads_per_slot=1, memory_per_slot=2**31,
    )  # fmt: skip
    yield Bench(node, repository)
    await pool.close()


ROOT = Path(__file__).resolve().parents[3]


class NodeProcess:
    """`python -m workers.node` with short intervals and fake runners."""

    def __init__(self, log: Path, *options: str, name: str = "node", **environment: str) -> None:
        self.log = log
        command = [sys.executable, "-m", "workers.node", "--slots", "2", "--name", name, *options]
        self.process = subprocess.Popen(
            argv_dying_with_parent(command),
            cwd=ROOT,
            env=os.environ
            | {
                "DJANGO_SETTINGS_MODULE": "webapp.settings.test",
                "TRAINYARD_DATABASE_URL": f"sqlite:///{connection.settings_dict['NAME']}",
                "TRAINYARD_REDIS_URL": "unix:///nowhere/valkey.sock",
                "TRAINYARD_RUNNER_MODULE": "tests.supervise.fake_runner",
                "TRAINYARD_FORK_RUNNERS": "0",
                "TRAINYARD_MIN_FREE_BYTES": "1000",
                "TRAINYARD_NODE_POLL": "0.1",
                "TRAINYARD_NODE_RENEW": "0.2",
                "TRAINYARD_NODE_WATCH": "0.05",
            }
            | environment,
            stdout=log.open("ab"),
            stderr=subprocess.STDOUT,
        )

    @property
    def runners(self) -> list[psutil.Process]:
        children = psutil.Process(self.process.pid).children(recursive=True)
        return [child for child in children if "tests.supervise.fake_runner" in _argv(child)]

    @property
    def consumers(self) -> list[psutil.Process]:
        children = psutil.Process(self.process.pid).children()
        return [child for child in children if "celery" in _argv(child)]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def _argv(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Callable[..., NodeProcess]]:
    started: list[NodeProcess] = []

    def start(*options: str, name: str = "node", **environment: str) -> NodeProcess:
        started.append(NodeProcess(tmp_path / "node.log", *options, name=name, **environment))
        return started[-1]

    yield start
    for node in started:
        node.end()
    sys.stdout.write((tmp_path / "node.log").read_text())
