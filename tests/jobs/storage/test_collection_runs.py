"""Runs of the collection: one at a time, stopped with its lease, from the scheduler and the command."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from django.core.management import call_command

from jobs import models as tables
from jobs import scheduler
from jobs.actions import leases
from jobs.actions.storage import collection, purge
from jobs.actions.storage.collection import collect
from jobs.errors import StaleFence
from jobs.models import Artifact
from tests.jobs.storage.test_collection import exists, keep


@pytest.fixture(autouse=True, params=["folder", "objects"])
def a_store(request: pytest.FixtureRequest, settings: Any, tmp_path: Path) -> Iterator[None]:
    """Use a new store for each kind."""
    settings.TRAINYARD_HOME = tmp_path
    settings.TRAINYARD_ARTIFACTS = str(tmp_path / "artifacts")
    if request.param == "objects":
        settings.TRAINYARD_ARTIFACTS = f"memory://{tmp_path.name}"
    yield


def test_only_one_process_collects_at_a_time(db: None) -> None:
    assert leases.hold(collection.LEASE, "another", seconds=60)
    assert collect() is None
    leases.release(collection.LEASE, "another")
    assert collect() is not None


def test_a_run_that_has_lost_its_lease_deletes_nothing_more(
    db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lone = keep(tmp_path, "lone")

    def suspended(deadline: float) -> int:
        del deadline
        leases.release("collection", tables.Lease.objects.get(name="collection").holder)
        return 0

    monkeypatch.setattr(purge, "purge_due", suspended)
    with pytest.raises(StaleFence):
        collection._Run("expired", Event(), dry=False)._delete(lone.digest)
    assert collect() is None
    assert exists(lone)


def test_the_scheduler_collects_in_a_thread_and_never_twice_at_once() -> None:
    running = []
    begin, end = Event(), Event()

    def slow(stop: Event) -> None:
        running.append(stop)
        begin.set()
        end.wait(10)

    stop = Event()
    background = collection.Background(stop, slow)
    background()
    assert begin.wait(10)
    background()
    end.set()
    background.join(10)
    assert running == [stop]
    assert scheduler.COLLECTION_SECONDS <= 3600


def test_the_command_says_what_it_would_delete(
    db: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lone = keep(tmp_path, "lone")
    call_command("collect", "--dry-run")
    assert "Would be deleted:\n" in (printed := capsys.readouterr().out)
    assert "1 files without a reference (4 bytes)" in printed
    assert exists(lone)
    call_command("collect")
    assert "Deleted:" in capsys.readouterr().out
    assert not Artifact.objects.exists()
