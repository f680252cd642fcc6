from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobs.store import LocalStore
from tests.supervise.conftest import FAKE, QUICK, Bench, FakeRepository
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
    """Return the folders of an installation with keys, a database and an artifact."""
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
    """Runs attempts on runners with users of their own."""
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
