import gc
import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from pytest_django import DjangoDbBlocker
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from jobs.actions.own_installation import IDENTITY_FILE
from jobs.queries.storage import disk_use
from tests import code_reading, database
from tests.flow.yard import RunningYard, open_yard
from tests.module_rows import module_rows, refuse_commits  # noqa: F401  a fixture
from tests.people import People, make_people
from tests.plugins import failed_tests
from tests.plugins.core_seconds import CoreSeconds
from tests.plugins.failed_tests import FailedTests
from tests.plugins.last_runs import LastRuns
from tests.plugins.tiers import FIRST_TIER, Tiers, folder_of
from webapp.api import throttle

SHARED = {
    "chaos": "yard",
    "deploy": "deploy",
    "flow": "yard",
    "upgrade": "yard",
    "browser": "browser",
    "serving/processes": "serving",
}
"""Folders whose tests share a slow fixture: one pytest-xdist worker runs the whole group."""
FIRST = (
    *("chaos", "flow", "upgrade", "browser", "postgres", "deploy", "supervise/processes"),
    *(
        "serving/processes",
        "sandbox/attacks",
        "engine/processes",
        "engine/long_trainings",
        "engine",
        "ops/installation",
        "runner/processes",
        "environments",
    ),
    *("fetching/processes", "chief/processes", "tutorials", "web/roles", "main_path", "serving", "supervise"),
    *("ops", "jobs", "web", "registry", "api"),
)
"""Folders in the order of their tests; those of all others follow.

The kills come before the flows, which take many models to production: each of them would start again whenever
the prediction server is killed. Tests that often wait (`chaos` and the folders of processes) do not all run
at the same time, so that others keep the processors busy. Folders with long files come before those with
short ones, so that no worker is left alone with a long file when the others have ended.
"""

if Path("/proc/driver/nvidia/version").exists() and not any(
    find_spec(name) for name in ("jax_cuda13_plugin", "jax_cuda12_plugin")
):
    # Workers take no work on such a machine, unless the CPU is asked for.
    os.environ.setdefault("JAX_PLATFORMS", "cpu")

MAX_PROCESSES = 4
INSTALLATION = pytest.StashKey[ExitStack]()

database.install()
code_reading.install()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(FIRST_TIER, action="store_true", help="leave out the folders of make test-all alone")
    parser.addoption(failed_tests.OPTION, type=Path, help="write the failed tests to this file, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    plugins: list[object] = [Tiers(config), CoreSeconds(config)]
    if not hasattr(config, "workerinput"):
        plugins.append(LastRuns(config))
        if file := config.getoption(failed_tests.OPTION):
            plugins.append(FailedTests(file))
    for plugin in plugins:
        config.pluginmanager.register(plugin)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Use one process more than there are processors: tests of running installations often wait."""
    return min(MAX_PROCESSES, (os.cpu_count() or 1) + 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    refuse_commits(items)
    order = {folder: place for place, folder in enumerate(FIRST)}
    items.sort(key=lambda item: order.get(folder_of(item.path), len(FIRST)))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collect tests without looking for garbage, which took a fifth of the time: imported modules stay."""
    gc.disable()
    try:
        worker = getattr(session.config, "workerinput", None)
        if worker is not None and session.config.args == session.config.getini("testpaths"):
            _import_in_own_order(int(worker["workerid"].removeprefix("gw")), worker["workercount"])
        return (yield)
    finally:
        gc.enable()


def _import_in_own_order(worker: int, workers: int) -> None:
    """Import all test files; each worker begins with another part.

    In a clean clone, one worker rewrites the assertions of each file and stores the result, which the others
    read. In the same order, all would do the same work at the same time.
    """
    folder = Path(__file__).parent
    files = sorted(folder.rglob("test_*.py"))
    begin = len(files) * worker // workers
    # Those of folders choose how Keras is imported.
    for file in (*sorted(folder.rglob("conftest.py")), *files[begin:], *files[:begin]):
        # It is raised again, and reported, when pytest collects the file.
        with suppress(Exception, pytest.skip.Exception, pytest.fail.Exception):
            import_module(".".join(file.relative_to(settings.BASE_DIR).with_suffix("").parts))


def pytest_collection_finish() -> None:
    gc.freeze()  # libraries are never freed; without them the frequent collections of Keras are faster
    # With Python's 2,000 a twelfth of the CPU time of tests of pages was spent in collections.
    gc.set_threshold(50_000)


def _group(nodeid: str) -> str:
    file = nodeid.split("::")[0]
    return SHARED.get(folder_of(settings.BASE_DIR / file), file)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Stop the shared installation after its last test: idle, it used a fortieth of all CPU time."""
    yield
    if nextitem is None or _group(item.nodeid) != _group(nextitem.nodeid):
        item.config.stash.get(INSTALLATION, ExitStack()).close()


class Grouped(LoadScopeScheduling):
    """Assigns groups to workers; `--dist=loadgroup` of pytest-xdist 3.8 groups none under pytest 9.2."""

    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Grouped:
    return Grouped(config, log)


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_modify_db_settings: None) -> bool:
    """Whether the test database begins as a copy of one that a process of this run has migrated."""
    options: Any = settings.DATABASES["default"]["TEST"]
    return connection.vendor == "sqlite" and database.copy_tables(options["NAME"])


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock():
        database.share_tables()
    yield
    with django_db_blocker.unblock():
        database.drop_versions()


@pytest.fixture(scope="session")
def migrated(django_db_setup: None) -> Path | None:
    """A database file for new homes, so that not each is migrated; None if the tests use no SQLite."""
    return database.file_of_tables() if connection.vendor == "sqlite" else None


@pytest.fixture(scope="session")
def flow_installation(
    tmp_path_factory: pytest.TempPathFactory, migrated: Path | None, pytestconfig: pytest.Config
) -> Iterator[RunningYard]:
    """One installation for all flow and chaos tests. Its runners end where a test requests it."""
    runner = "tests.chaos.doomed_runner"
    home, data = tmp_path_factory.mktemp("flow") / "home", str(tmp_path_factory.mktemp("data"))
    with ExitStack() as ends:
        pytestconfig.stash[INSTALLATION] = ends
        installation = ends.enter_context(
            open_yard(home, TRAINYARD_RUNNER_MODULE=runner, TRAINYARD_DATA_ROOTS=data)
        )
        installation.open(database=migrated)
        yield installation


@pytest.fixture(autouse=True)
def unthrottled() -> None:
    """Forget the use of limits and quotas, because users and projects in other tests have the same ids."""
    throttle.reset()
    disk_use.forget_recent_bytes()


@pytest.fixture(autouse=True)
def no_identity() -> None:
    """Forget to which installation the home belongs: on PostgreSQL the database of each test is a new one."""
    Path(settings.TRAINYARD_HOME, IDENTITY_FILE).unlink(missing_ok=True)


@pytest.fixture
def people(db: None) -> People:
    """The project "yard" with a user of each role, a stranger and an administrator."""
    return make_people()
