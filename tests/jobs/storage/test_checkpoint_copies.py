"""Which checkpoints have copies in object storage, and when these are deleted."""

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from jobs.actions.runs import attempt_end, schedule
from jobs.actions.storage import checkpoint_copies, retention
from jobs.actions.storage.collection import collect
from jobs.errors import StaleFence
from jobs.messages.events import CheckpointCommitted
from jobs.models import Attempt, Checkpoint, Job
from jobs.states import Outcome
from jobs.store import CheckpointCopies, store
from tests.jobs.yard import PretendWorker, Yard
from workers.node.checkpoints import OLD_SECONDS, NodeCheckpoints
from workers.node.db_threads import DatabaseThread


@pytest.fixture
def copies(settings: Any, tmp_path: Path) -> Iterator[CheckpointCopies]:
    """Use a store of objects."""
    settings.TRAINYARD_HOME = tmp_path
    settings.TRAINYARD_ARTIFACTS = f"memory://{tmp_path.name}"
    copies = store().checkpoint_copies
    assert copies is not None
    yield copies


@pytest.fixture
def attempt(installation: Yard, worker: PretendWorker, copies: CheckpointCopies) -> Attempt:
    """A running attempt of a training."""
    installation.submit()
    schedule.place_jobs()
    [attempt] = worker.claim_all()
    return attempt


def write(worker: PretendWorker, attempt: Attempt, *steps: int) -> list[str]:
    """Commit checkpoints. Return their folders."""
    folders = [f"job-{attempt.job_id}/{step:010d}-{attempt.number}" for step in steps]
    for step, folder in zip(steps, folders, strict=True):
        path = store().checkpoint_root / folder
        path.mkdir(parents=True)
        (path / "state.json").write_text("{}")
        event = CheckpointCommitted(
            time=time.time(), folder=folder, step=step, epoch=step, manifest="m", bytes=1
        )
        worker.report(attempt, event)
    return folders


def upload(copies: CheckpointCopies, attempt: Attempt, folder: str, tmp_path: Path) -> None:
    """Copy a checkpoint as a worker does."""
    (tmp_path / "archive").write_text(folder)
    copies.put(folder, tmp_path / "archive")
    for replaced in checkpoint_copies.record(attempt.pk, folder):
        copies.erase(replaced)


def names(copies: CheckpointCopies) -> list[str]:
    return sorted(entry.folder for entry in copies.entries())


def test_two_copies_of_a_training_stay(
    worker: PretendWorker, attempt: Attempt, copies: CheckpointCopies, tmp_path: Path
) -> None:
    folders = write(worker, attempt, 1, 2, 3, 4)
    for folder in folders:
        assert checkpoint_copies.needed(attempt.pk, [folder]) == {folder}
        upload(copies, attempt, folder, tmp_path)
        assert checkpoint_copies.needed(attempt.pk, [folder]) == set()
    assert names(copies) == folders[2:]
    with_copy = Checkpoint.objects.filter(stored__isnull=False).order_by("step")
    assert list(with_copy.values_list("folder", flat=True)) == folders[2:]


def test_a_worker_that_lost_its_attempt_records_no_copy(worker: PretendWorker, attempt: Attempt) -> None:
    [folder] = write(worker, attempt, 1)
    attempt_end.finish(attempt.pk, Outcome.LOST)
    for call in (
        lambda: checkpoint_copies.record(attempt.pk, folder),
        lambda: checkpoint_copies.needed(attempt.pk, [folder]),
    ):
        with pytest.raises(StaleFence):
            call()
    assert Checkpoint.objects.get().stored is None


def test_a_checkpoint_that_was_removed_during_its_upload_has_no_copy(
    worker: PretendWorker, attempt: Attempt, copies: CheckpointCopies, tmp_path: Path
) -> None:
    folders = write(worker, attempt, 1, 2, 3)
    retention.remove_superfluous()
    upload(copies, attempt, folders[0], tmp_path)
    assert names(copies) == []


def test_retention_keeps_the_newest_copy_until_a_newer_one_is_complete(
    worker: PretendWorker, attempt: Attempt, copies: CheckpointCopies, tmp_path: Path
) -> None:
    folders = write(worker, attempt, 1)
    upload(copies, attempt, folders[0], tmp_path)
    folders += write(worker, attempt, 2, 3, 4, 5)
    retention.remove_superfluous()
    assert [row.step for row in Checkpoint.objects.kept().order_by("step")] == [1, 4, 5]
    upload(copies, attempt, folders[4], tmp_path)
    retention.remove_superfluous()
    assert [row.step for row in Checkpoint.objects.kept().order_by("step")] == [4, 5]
    checkpoint_copies.erase_removed(stop=threading.Event())
    assert names(copies) == [folders[4]]


def test_finished_work_leaves_no_copy(
    worker: PretendWorker, attempt: Attempt, copies: CheckpointCopies, tmp_path: Path
) -> None:
    folders = write(worker, attempt, 1, 2)
    for folder in folders:
        upload(copies, attempt, folder, tmp_path)
    Job.objects.update(state="completed")
    retention.remove_superfluous()
    assert checkpoint_copies.erase_removed(stop=threading.Event()) == 2
    assert names(copies) == []
    assert checkpoint_copies.erase_removed(stop=threading.Event()) == 0


def age_objects() -> None:
    past = datetime.now(UTC) - timedelta(days=3)
    for file in MemoryFileSystem.store.values():
        file.created = file.modified = past


def test_the_collection_deletes_a_copy_whose_worker_died_before_it_was_recorded(
    worker: PretendWorker, attempt: Attempt, copies: CheckpointCopies, tmp_path: Path
) -> None:
    first, second = write(worker, attempt, 1, 2)
    upload(copies, attempt, first, tmp_path)
    copies.put(second, tmp_path / "archive")
    assert collect() is not None
    assert names(copies) == [first, second]
    age_objects()
    dry, done = collect(dry_run=True), collect()
    assert dry is not None and done is not None
    assert (dry.checkpoints, done.checkpoints) == (1, 1)
    assert names(copies) == [first]


async def sweep() -> None:
    await NodeCheckpoints.of_store().sweep(DatabaseThread("test"))


def local(attempt: Attempt) -> list[str]:
    place = store().checkpoint_root / f"job-{attempt.job_id}"
    return sorted(path.name for path in place.iterdir())


@pytest.mark.django_db(transaction=True)
def test_another_machine_deletes_what_retention_has_removed(
    worker: PretendWorker, attempt: Attempt, copies: CheckpointCopies
) -> None:
    write(worker, attempt, 1, 2, 3)
    Checkpoint.objects.filter(step=1).update(removed=datetime.now(UTC))
    root = store().checkpoint_root
    young, old = (root / f"job-{attempt.job_id}" / f"{step:010d}-1" for step in (8, 9))
    left = root / f"job-{attempt.job_id}" / ".fetched-1"
    for path in (young, old, left, root / "job-999999" / "0000000001-1"):
        path.mkdir(parents=True)
    past = time.time() - OLD_SECONDS - 60
    for path in (old, left):
        os.utime(path, (past, past))
    asyncio.run(sweep())
    assert local(attempt) == ["0000000002-1", "0000000003-1", "0000000008-1"]
    assert not (root / "job-999999").exists()
