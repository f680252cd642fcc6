"""The scheduler's loop."""

import threading

import pytest

from jobs import scheduler
from jobs.actions.data import datasets, resumable_uploads
from jobs.actions.storage import collection


@pytest.mark.django_db
def test_the_scheduler_goes_on_when_the_store_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise PermissionError("the folder of uploads cannot be read")

    stop = threading.Event()
    monkeypatch.setattr(scheduler, "hold_lease", lambda holder: True)
    monkeypatch.setattr(scheduler, "tick", stop.set)
    monkeypatch.setattr(scheduler, "COLLECTION_DELAY", 0.0)
    monkeypatch.setattr(datasets, "ensure_bundled", lambda: None)
    monkeypatch.setattr(collection.Background, "__call__", lambda self: None)
    monkeypatch.setattr(resumable_uploads, "collect", fail)
    scheduler.run(stop)
    assert stop.is_set()
    assert "the folder of uploads cannot be read" in caplog.text
