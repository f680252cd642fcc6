"""A machine keeps the copies that it used last, up to a size."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from jobs import clock
from jobs.actions.storage import host_copies
from jobs.models import Checkpoint
from jobs.store import ObjectStore, store
from tests.factories import make_job
from tests.people import People


def days_ago(path: Path, days: float) -> None:
    moment = time.time() - days * 86_400
    os.utime(path, (moment, moment))


@pytest.fixture
def objects(tmp_path: Path, settings: Any) -> ObjectStore:
    """A store of objects whose machine may keep 25 bytes."""
    settings.TRAINYARD_ARTIFACT_CACHE_BYTES = 25
    settings.TRAINYARD_HOME, settings.TRAINYARD_ARTIFACTS = tmp_path, f"memory://{tmp_path}"
    objects = store()
    assert isinstance(objects, ObjectStore)
    return objects


def stored(objects: ObjectStore, tmp_path: Path, *days: float) -> list[str]:
    """Store files of ten bytes that were used so many days ago."""
    digests = []
    for number, age in enumerate(days):
        file = tmp_path / "file"
        file.write_text(f"{number:010d}")
        digests.append(objects.put(file).digest)
        days_ago(objects.local.path(digests[-1]), age)
    return digests


def kept(objects: ObjectStore) -> set[str]:
    return {entry.digest for entry in objects.local.files()}


def test_the_least_recently_used_copies_are_evicted_and_fetched_again(
    objects: ObjectStore, tmp_path: Path
) -> None:
    first, second, third = stored(objects, tmp_path, 3, 5, 1)
    assert objects.evict_copies() == 1
    assert kept(objects) == {first, third}
    assert objects.path(second).read_text() == "0000000001"


def test_a_copy_that_is_read_counts_as_used(objects: ObjectStore, tmp_path: Path) -> None:
    _first, second, third = stored(objects, tmp_path, 3, 5, 1)
    objects.path(second)
    objects.evict_copies()
    assert kept(objects) == {second, third}


def test_what_was_used_in_the_last_hour_or_is_read_by_a_run_is_kept(
    objects: ObjectStore, tmp_path: Path
) -> None:
    first, second, third, _fourth = stored(objects, tmp_path, 0, 0, 9, 8)
    task = tmp_path / "nodes" / "host" / "attempts" / "7" / "spec.json"
    task.parent.mkdir(parents=True)
    task.write_text(json.dumps({"model": str(objects.local.path(third))}))
    days_ago(objects.local.path(third), 9)
    assert objects.evict_copies() == 1
    assert kept(objects) == {first, second, third}


def test_processes_that_add_copies_evict_others_now_and_then(
    objects: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(objects, tmp_path, 3, 4, 5, 6)
    monkeypatch.setattr(objects, "_evicted", 0.0)
    file = tmp_path / "file"
    file.write_text("new")
    objects.put(file)
    assert len(kept(objects)) == 3  # the new one, and two of the others


@pytest.mark.django_db
def test_folders_of_finished_jobs_are_evicted_and_those_of_open_ones_are_not(
    objects: ObjectStore, tmp_path: Path, people: People
) -> None:
    done, running = (
        make_job(by=people.member, project=people.project, state=state) for state in ("completed", "running")
    )
    for number in (done.pk, running.pk, 999_999):
        folder = objects.checkpoint_root / f"job-{number}" / "1"
        folder.mkdir(parents=True)
        (folder / "weights").write_bytes(bytes(30))
        for path in (folder / "weights", folder, folder.parent):
            days_ago(path, 1)
    assert host_copies.tidy(host_copies.host_folders()) == 2
    assert [folder.name for folder in objects.checkpoint_root.iterdir()] == [f"job-{running.pk}"]


@pytest.mark.django_db
def test_a_checkpoint_that_retention_has_removed_elsewhere_is_removed_here(
    objects: ObjectStore, people: People
) -> None:
    job = make_job(by=people.member, project=people.project, state="running")
    for step, removed in ((1, clock.now()), (2, None)):
        folder = f"job-{job.pk}/{step}"
        (objects.checkpoint_root / folder).mkdir(parents=True)
        Checkpoint.objects.create(
            job=job, attempt=1, step=step, epoch=1, folder=folder, manifest="x", bytes=1, removed=removed
        )
    host_copies.tidy(host_copies.host_folders())
    assert [path.name for path in (objects.checkpoint_root / f"job-{job.pk}").iterdir()] == ["2"]


@pytest.mark.django_db
def test_a_shared_folder_is_left_to_the_collection(tmp_path: Path, settings: Any) -> None:
    settings.TRAINYARD_HOME, settings.TRAINYARD_ARTIFACTS = tmp_path, str(tmp_path / "artifacts")
    (store().checkpoint_root / "job-1").mkdir()
    assert host_copies.host_folders() == host_copies.HostFolders()
    assert host_copies.tidy(host_copies.host_folders()) == 0
