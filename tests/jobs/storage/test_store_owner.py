"""A copy of an installation only reads the artifact store of the original, until it adopts it."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from jobs import clock
from jobs.actions.data import resumable_uploads
from jobs.actions.storage import checkpoint_copies, collection, retention
from jobs.actions.storage import ownership as owning
from jobs.errors import NotFound, NotOwned
from jobs.models import AuditEvent, Checkpoint, InstallationSettings, Lease
from jobs.queries.storage import ownership
from jobs.store import ObjectStore, sha256_of, store
from tests.factories import make_job
from tests.people import People
from webapp.ops import preparation

pytestmark = pytest.mark.django_db(transaction=True)  # the question has a connection of its own

OTHER = "f" * 32


@pytest.fixture(autouse=True, params=["folder", "objects"])
def location(request: pytest.FixtureRequest, tmp_path: Path, settings: Any) -> Iterator[None]:
    settings.TRAINYARD_HOME = tmp_path
    folder = request.param == "folder"
    settings.TRAINYARD_ARTIFACTS = str(tmp_path / "store") if folder else f"memory://{tmp_path}"
    ownership.forget()
    yield
    ownership.forget()


def put(tmp_path: Path, text: str) -> str:
    file = tmp_path / "file"
    file.write_text(text)
    return store().put(file).digest


def restore_a_copy(identity: str = "a" * 32) -> None:
    """Change the database as a restore into a new home does."""
    Lease.objects.create(name=ownership.RESTORED, holder=identity, until="2999-01-01T00:00:00Z")
    ownership.forget()


def test_a_new_installation_owns_its_store(tmp_path: Path) -> None:
    assert owning.settle() is None
    identity = InstallationSettings.objects.get().identity
    assert store().owner() == identity
    assert owning.settle() is None
    assert InstallationSettings.objects.get().identity == identity
    put(tmp_path, "new")


def test_an_upgraded_installation_owns_the_store_that_it_had(tmp_path: Path) -> None:
    put(tmp_path, "from before")
    assert owning.settle() is None
    assert store().owner() == InstallationSettings.objects.get().identity


@pytest.mark.parametrize("marked", [True, False])
def test_a_copy_only_reads_the_store_of_the_original(tmp_path: Path, marked: bool) -> None:
    digest = put(tmp_path, "of the original")
    if marked:
        assert owning.settle() is None
    restore_a_copy()
    sentence = owning.settle() or ""
    assert "only read" in sentence
    assert "adopt-store" in sentence
    assert store().path(digest).read_text() == "of the original"
    assert collection.collect(dry_run=True) is not None
    with pytest.raises(NotOwned, match="only read"):
        collection.collect()
    assert retention.remove_superfluous() == 0


def test_nothing_can_be_changed_in_a_foreign_store(tmp_path: Path, people: People) -> None:
    kept, trashed = put(tmp_path, "kept"), put(tmp_path, "trashed")
    store().discard(trashed, stored_before=time.time() + 60)
    store().set_owner(OTHER)
    file = tmp_path / "file"
    for change in (
        lambda: store().put(file),
        lambda: store().put_blocks([b"x"]),
        lambda: store().take(file, sha256_of(file)),
        lambda: store().discard(kept, stored_before=time.time() + 60),
        lambda: store().erase(trashed),
        lambda: resumable_uploads.begin(people.project, name="a.csv", length=1, by=people.member),
    ):
        with pytest.raises(NotOwned):
            change()
    # It is read where it is.
    assert store().path(trashed).read_text() == "trashed"
    assert [entry.digest for entry in store().trash()] == [trashed]
    with pytest.raises(NotFound):
        store().path("0" * 64)


def test_checkpoints_and_uploads_of_the_original_are_left_alone(people: People) -> None:
    store().set_owner(OTHER)
    job = make_job(by=people.member, project=people.project, state="completed")
    checkpoint = Checkpoint.objects.create(
        job=job, attempt=1, step=1, epoch=1, folder=f"job-{job.pk}/1", manifest="x", bytes=1
    )
    upload = store().incoming / "of-the-original"
    upload.write_bytes(b"half")
    os.utime(upload, (0, 0))
    assert retention.remove_superfluous() == 0
    assert resumable_uploads.collect() == 0
    assert upload.exists()
    checkpoint.refresh_from_db()
    assert checkpoint.removed is None


def test_copies_of_checkpoints_in_a_foreign_store_are_read_and_not_changed(tmp_path: Path) -> None:
    copies = store().checkpoint_copies
    if copies is None:
        return  # a folder has no copies
    archive = tmp_path / "archive"
    archive.write_bytes(b"of the original")
    copies.put("job-1/0000000001-1", archive)
    store().set_owner(OTHER)
    for change in (
        lambda: copies.put("job-1/0000000001-1", archive),
        lambda: copies.erase("job-1/0000000001-1"),
    ):
        with pytest.raises(NotOwned, match="only read"):
            change()
    copies.get("job-1/0000000001-1", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"of the original"


def test_the_scheduler_erases_no_copies_in_a_foreign_store(
    people: People, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copies = store().checkpoint_copies
    if copies is None:
        return  # a folder has no copies
    job = make_job(by=people.member, project=people.project, state="completed")
    folder, now = f"job-{job.pk}/0000000001-1", clock.now()
    Checkpoint.objects.create(
        job=job, attempt=1, step=1, epoch=1, folder=folder, manifest="x", bytes=1, stored=now, removed=now
    )
    (tmp_path / "archive").write_bytes(b"of the original")
    copies.put(folder, tmp_path / "archive")
    store().set_owner(OTHER)
    ownership.forget()
    erasing = collection.Background(threading.Event(), checkpoint_copies.erase_removed, name="removal")
    erasing()
    erasing.join(10)
    assert [entry.folder for entry in copies.entries()] == [folder]
    assert "the removal changes nothing: The artifact store" in caplog.text


def test_an_adopted_store_can_be_changed_and_the_adoption_is_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert owning.settle() is None
    original = store().owner()
    restore_a_copy()
    assert owning.settle()
    call_command("adopt_store")
    assert "belongs to this installation now" in capsys.readouterr().out
    assert store().owner() == "a" * 32 == InstallationSettings.objects.get().identity
    put(tmp_path, "new")
    assert not Lease.objects.filter(name=ownership.RESTORED).exists()
    row = AuditEvent.objects.get(action="storage.adopt")
    assert row.detail == {"owner": "a" * 32, "was": original}
    call_command("adopt_store")
    assert AuditEvent.objects.filter(action="storage.adopt").count() == 1


def test_the_command_collect_ends_with_the_reason() -> None:
    store().set_owner(OTHER)
    with pytest.raises(CommandError, match="belongs to another installation"):
        call_command("collect")


def test_an_owner_is_no_artifact() -> None:
    store().set_owner(OTHER)
    assert list(store().files()) == []
    assert isinstance(store(), ObjectStore) or store().owner() == OTHER


def test_a_store_that_does_not_answer_stops_no_start_and_no_upload(
    monkeypatch: pytest.MonkeyPatch, people: People
) -> None:
    class OfAnotherKind(Exception):
        """An exception of a library for object storage, which is no `OSError`."""

    def fail(_: object) -> None:
        raise OfAnotherKind("no route")

    monkeypatch.setattr(type(store()), "owner", fail)
    reported: list[str] = []
    preparation._settle_owner(reported.append)
    assert "does not answer: no route" in reported[0]
    resumable_uploads.begin(people.project, name="a.csv", length=1, by=people.member)
    with pytest.raises(OSError, match="does not answer"):
        retention.remove_superfluous()  # the scheduler logs it


def test_a_store_that_is_silent_holds_up_the_removal_of_checkpoints_for_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert owning.settle() is None
    answered, owner, asked = threading.Event(), store().owner(), []

    def be_silent() -> str | None:
        asked.append(1)
        answered.wait(20)
        return owner

    monkeypatch.setattr(store(), "owner", be_silent)
    monkeypatch.setattr(ownership, "PATIENCE_SECONDS", 0.05)
    try:
        for _ in range(3):
            with pytest.raises(OSError, match="does not answer within"):
                retention.remove_superfluous()
    finally:
        answered.set()
    monkeypatch.setattr(ownership, "PATIENCE_SECONDS", 20.0)
    assert retention.remove_superfluous() == 0
    assert len(asked) == 1


def test_an_upload_waits_for_a_silent_store_for_a_moment_only(
    monkeypatch: pytest.MonkeyPatch, people: People
) -> None:
    assert owning.settle() is None
    ownership.forget()
    answered, owner, asked = threading.Event(), store().owner(), []

    def be_silent() -> str | None:
        asked.append(1)
        answered.wait(20)
        return owner

    monkeypatch.setattr(store(), "owner", be_silent)
    monkeypatch.setattr(ownership, "PATIENCE_SECONDS", 0.05)
    began = time.monotonic()
    try:
        for _ in range(3):
            resumable_uploads.begin(people.project, name="a.csv", length=1, by=people.member)
    finally:
        answered.set()
    assert time.monotonic() - began < 10
    assert len(asked) == 1, "all wait for the same answer"
