"""The processes of fetches: they are killed, replaced and cancelled, and leave nothing behind."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import connection

from jobs.actions.data import fetch_attempts, fetches
from jobs.fetching.launcher import Launcher, command, environment
from jobs.models import Artifact, DatasetVersion, Fetch
from jobs.store import store
from tests.fetching.making import CSV, ask, error_of, row_of
from tests.fetching.servers import Exchange, Server, file, serving
from tests.world import World

pytestmark = [
    pytest.mark.django_db(transaction=True),  # other processes write
    pytest.mark.skipif(connection.vendor != "sqlite", reason="the processes open the test's SQLite database"),
]
State = Fetch.State


@pytest.fixture
def launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any, world: World
) -> Iterator[Launcher]:
    """Return a launcher whose processes use the test's database, key and a store of its own."""
    settings.TRAINYARD_ARTIFACTS = str(tmp_path / "artifacts")
    store()
    for name, value in {
        "TRAINYARD_HOME": str(tmp_path / "home"),
        "TRAINYARD_DATABASE_URL": f"sqlite:///{connection.settings_dict['NAME']}",
        "TRAINYARD_ARTIFACTS": str(tmp_path / "artifacts"),
        "TRAINYARD_SECRET_KEY_FILE": str(django_settings.TRAINYARD_HOME / "secret.key"),
        "TRAINYARD_MIN_FREE_BYTES": "1000",
        "DJANGO_SETTINGS_MODULE": "webapp.settings.main",
    }.items():
        monkeypatch.setenv(name, value)
    launcher = Launcher()
    yield launcher
    launcher.stop()


def until(condition: Callable[[], object], launcher: Launcher) -> None:
    """Let the launcher work until a condition holds."""
    deadline = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < deadline, list(Fetch.objects.values())
        launcher()
        time.sleep(0.05)


def slow(exchange: Exchange) -> None:
    """Send some data and then a little from time to time, until the test ends."""
    exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n", CSV * 10_000)
    while not exchange.stopping.wait(0.05):
        exchange.send(CSV * 100)


def kill(launcher: Launcher) -> None:
    (pid,) = launcher.pids
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def url_of(server: Server, settings: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    place = ("127.0.0.1", server.port)
    settings.TRAINYARD_FETCH_ALLOW = frozenset({place})
    monkeypatch.setenv("TRAINYARD_FETCH_ALLOW", f"127.0.0.1:{server.port}")
    return f"http://127.0.0.1:{server.port}/people.csv"


def leftovers() -> list[str]:
    """Return the files in the store."""
    root = Path(str(django_settings.TRAINYARD_ARTIFACTS))
    return [str(path) for path in root.rglob("*") if path.is_file()]


def test_a_file_is_fetched_by_a_process_of_its_own(
    launcher: Launcher, world: World, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(file(CSV)) as server:
        version = ask(world, url_of(server, settings, monkeypatch))
        until(lambda: row_of(version).state == State.DONE, launcher)
    version.refresh_from_db()
    assert version.upload is not None and store().path(version.upload.digest).read_bytes() == CSV
    until(lambda: not launcher.pids, launcher)


def test_a_killed_process_leaves_nothing_and_is_replaced(
    launcher: Launcher, world: World, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(slow) as server:
        version = ask(world, url_of(server, settings, monkeypatch))
        until(lambda: row_of(version).received > 0, launcher)
        server.answer = file(CSV)
        kill(launcher)
        assert not leftovers()
        until(lambda: row_of(version).state == State.DONE, launcher)
    assert len(leftovers()) == 1 and row_of(version).fence == 2
    assert Artifact.objects.filter(pk=row_of(version).sha256).exists()


def test_a_fetch_whose_processes_are_killed_three_times_fails_with_a_sentence(
    launcher: Launcher, world: World, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(slow) as server:
        version = ask(world, url_of(server, settings, monkeypatch))
        for _ in range(3):
            until(lambda: row_of(version).received > 0, launcher)
            kill(launcher)
            until(lambda: row_of(version).received == 0 or row_of(version).state == State.FAILED, launcher)
    assert "ended 3 times without a result" in error_of(version)["message"]
    assert not leftovers()


def test_a_cancelled_fetch_ends_its_process(
    launcher: Launcher, world: World, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(slow) as server:
        version = ask(world, url_of(server, settings, monkeypatch))
        until(lambda: row_of(version).received > 0, launcher)
        fetches.cancel(version, by=world.owner)
        until(lambda: not launcher.pids, launcher)
    assert row_of(version).state == State.CANCELLED
    assert error_of(version)["code"] == "cancelled"
    assert not leftovers()


def test_a_scheduler_that_ends_gives_its_fetches_back(
    launcher: Launcher, world: World, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(slow) as server:
        version = ask(world, url_of(server, settings, monkeypatch))
        until(lambda: row_of(version).received > 0, launcher)
        launcher.stop()
    assert (row_of(version).state, row_of(version).attempts) == (State.WAITING, 0)
    assert DatasetVersion.objects.get(pk=version.pk).state == "preparing"
    assert not leftovers()


def test_a_process_that_cannot_be_started_does_not_end_the_scheduler(
    launcher: Launcher, world: World
) -> None:
    version = ask(world, "https://example.org/people.csv")
    broken = Launcher(lambda _: ("/no/such/program",))
    for _ in range(3):
        broken()
    assert error_of(version)["code"] == "process_lost"


def test_no_address_and_no_secret_is_in_the_command_or_the_environment() -> None:
    claimed = fetch_attempts.Claimed(7, 3)
    assert command(claimed)[-4:] == ("-m", "jobs.fetching", "7", "3")
    unsafe = {"AWS_SECRET_ACCESS_KEY": "x", "AWS_PROFILE": "x", "https_proxy": "http://x", "HTTP_PROXY": "x",
             "GOOGLE_APPLICATION_CREDENTIALS": "x", "STORAGE_EMULATOR_HOST": "x", "PATH": "/bin"}  # fmt: skip
    variables = environment(unsafe)
    assert "x" not in variables.values() and variables["PATH"] == "/bin"
    assert variables["AWS_EC2_METADATA_DISABLED"] == "true"
