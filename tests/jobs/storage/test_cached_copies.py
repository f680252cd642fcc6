"""A machine keeps the copies that it used last, up to a size."""

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from jobs import clock
from jobs.models import Checkpoint
from jobs.store import ObjectStore, store
from tests.factories import make_job
from tests.people import People
from workers.node.checkpoints import NodeCheckpoints
from workers.node.db_threads import DatabaseThread


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


@pytest.mark.django_db(transaction=True)  # the node has a connection of its own
def test_folders_of_finished_jobs_are_evicted_if_what_they_keep_has_copies(
    objects: ObjectStore, people: People
) -> None:
    states = ("completed", "running", "stopped", "stopped")
    done, running, copied, uncopied = (
        make_job(by=people.member, project=people.project, state=state) for state in states
    )
    for job in (copied, uncopied):
        Checkpoint.objects.create(
            job=job,
            attempt=1,
            step=1,
            epoch=1,
            folder=checkpoint_of(job.pk),
            manifest="x",
            bytes=1,
            stored=clock.now() if job == copied else None,
        )
    for number in (done.pk, running.pk, copied.pk, uncopied.pk, 999_999):
        folder = objects.checkpoint_root / checkpoint_of(number)
        folder.mkdir(parents=True)
        (folder / "weights").write_bytes(bytes(30))
        for path in (folder / "weights", folder, folder.parent):
            days_ago(path, 0.5)
    asyncio.run(NodeCheckpoints.of_store().sweep(DatabaseThread("test")))
    left = sorted(folder.name for folder in objects.checkpoint_root.iterdir() if folder.is_dir())
    assert left == sorted([f"job-{running.pk}", f"job-{uncopied.pk}"])


def checkpoint_of(job: int) -> str:
    return f"job-{job}/0000000001-1"


@pytest.mark.django_db(transaction=True)
def test_a_shared_folder_is_left_to_the_collection(tmp_path: Path, settings: Any) -> None:
    settings.TRAINYARD_HOME, settings.TRAINYARD_ARTIFACTS = tmp_path, str(tmp_path / "artifacts")
    (store().checkpoint_root / "job-1").mkdir()
    asyncio.run(NodeCheckpoints.of_store().sweep(DatabaseThread("test")))
    assert (store().checkpoint_root / "job-1").is_dir()


def test_what_killed_processes_left_of_downloads_is_deleted(
    objects: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [digest] = stored(objects, tmp_path, 0)
    objects.local.path(digest).unlink()

    def be_killed(_source: str, target: str) -> None:
        # A killed process leaves a download and a copy that nothing completes.
        for age, name in ((0, "young"), (2, "old")):
            (left := objects.local.root / f"{Path(target).parent.name}{name}").mkdir()
            (left / digest).write_text("0000")
            days_ago(left, age)
        (copy := objects.local.root / digest[:2] / ".put-1").write_text("0000")
        days_ago(copy, 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(objects.fs, "get_file", be_killed)
    with pytest.raises(KeyboardInterrupt):
        objects.path(digest)
    objects.evict_copies()
    left = {path.name[-5:] for path in objects.local.root.iterdir() if (path / digest).exists()}
    assert left == {"young"}
    assert not list(objects.local.root.glob("*/.put-*"))
