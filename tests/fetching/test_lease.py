"""The lease of a fetch does not end while a large file is stored."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from jobs import clock
from jobs.actions.data import fetches
from jobs.fetching import lease
from jobs.models import Fetch
from tests.fetching.making import CSV, ask, fetch, row_of
from tests.fetching.servers import file, serving
from tests.world import World

pytestmark = pytest.mark.django_db(transaction=True)  # two connections
State = Fetch.State


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "lease of a fetch"]


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def storing(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Return a function that calls another one whenever a file is put into the object store."""
    settings.TRAINYARD_ARTIFACTS = f"memory://{tmp_path}"
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.01)
    put_file = MemoryFileSystem.put_file

    def call(meanwhile: Callable[[], None]) -> None:
        def slow(*args: Any, **kwargs: Any) -> None:
            meanwhile()
            put_file(*args, **kwargs)

        monkeypatch.setattr(MemoryFileSystem, "put_file", slow)

    return call


def test_the_lease_is_renewed_while_a_file_is_put_into_the_object_store(
    world: World, storing: Any, allow: Any
) -> None:
    def meanwhile() -> None:
        almost = clock.now() + timedelta(seconds=1)
        Fetch.objects.update(until=almost)
        until(lambda: Fetch.objects.filter(until__gt=almost + timedelta(seconds=1)).exists())

    storing(meanwhile)
    with serving(file(CSV)) as server:
        allow("127.0.0.1", server.port)
        version = fetch(ask(world, f"http://127.0.0.1:{server.port}/people.csv"))
    assert row_of(version).state == State.DONE
    assert not threads()


def test_a_fetch_that_is_cancelled_while_its_file_is_stored_stays_cancelled(
    world: World, storing: Any, allow: Any
) -> None:
    seen: list[int] = []

    def meanwhile() -> None:
        seen.append(len(threads()))
        fetches.cancel(version, by=world.owner)
        until(lambda: not threads())

    storing(meanwhile)
    with serving(file(CSV)) as server:
        allow("127.0.0.1", server.port)
        version = ask(world, f"http://127.0.0.1:{server.port}/people.csv")
        fetch(version)
    assert (seen, row_of(version).state, row_of(version).until) == ([1], State.CANCELLED, None)
