"""Backups while trainings and collections run: shared, growing, vanishing and hostile files."""

import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ops.test_backup import Installation, empty, full
from webapp.ops import backup
from webapp.ops.backup_file import BackupWriter, _Counted
from webapp.ops.errors import OpsError

__all__ = ["empty", "full"]

NEWEST, OLDER = "checkpoints/job-1/0000000020-1", "checkpoints/job-1/0000000010-1"


@pytest.fixture
def training(full: Installation) -> Installation:
    """Two checkpoints that share the best weights, and the history to which the training appends."""
    for name in (OLDER, NEWEST):
        (full.artifacts / name).mkdir(parents=True)
    for name, content in (("best.npz", b"best"), ("history.jsonl", b"1\n")):
        (full.artifacts / OLDER / name).write_bytes(content)
        (full.artifacts / NEWEST / name).hardlink_to(full.artifacts / OLDER / name)
    return full


def append_before(monkeypatch: pytest.MonkeyPatch, member: str, file: Path, text: bytes) -> None:
    """Let a training append to a file just before the backup reads it under one of its names."""
    add = BackupWriter.add

    def appended(writer: BackupWriter, opened: object, name: str) -> None:
        if name == member:
            with file.open("ab") as history:
                history.write(text)
        add(writer, opened, name)  # type: ignore[arg-type]

    monkeypatch.setattr(BackupWriter, "add", appended)


def change_before_read(monkeypatch: pytest.MonkeyPatch, file: Path, change: Callable[[], object]) -> None:
    """Change a file after the backup has asked for its size."""
    read = _Counted.read

    def changed(counted: _Counted, size: int = -1) -> bytes:
        if os.path.samestat(os.fstat(counted._file.fileno()), file.stat()):
            change()
        return read(counted, size)

    monkeypatch.setattr(_Counted, "read", changed)


def test_files_that_checkpoints_share_are_restored(
    training: Installation, empty: Installation, tmp_path: Path
) -> None:
    empty.restore(training.back_up(tmp_path / "all.tar"))
    for name in (OLDER, NEWEST):
        assert (empty.artifacts / name / "best.npz").read_bytes() == b"best"
    assert (empty.artifacts / OLDER / "best.npz").samefile(empty.artifacts / NEWEST / "best.npz")
    assert training.written.notes == ()


def test_a_backup_of_the_first_format_with_links_is_restored(
    training: Installation, empty: Installation, tmp_path: Path
) -> None:
    saved = training.back_up(tmp_path / "all.tar")
    saved.write_bytes(saved.read_bytes().replace(b'"format": 2', b'"format": 1'))
    empty.restore(saved)
    assert (empty.artifacts / NEWEST / "best.npz").read_bytes() == b"best"


def test_a_shared_file_that_grows_between_two_names_is_complete_under_both(
    training: Installation, empty: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_before(
        monkeypatch,
        f"artifacts/{NEWEST}/history.jsonl",
        training.artifacts / NEWEST / "history.jsonl",
        b"2\n",
    )
    empty.restore(training.back_up(tmp_path / "all.tar"))
    assert (empty.artifacts / OLDER / "history.jsonl").read_bytes() == b"1\n"
    assert (empty.artifacts / NEWEST / "history.jsonl").read_bytes() == b"1\n2\n"


def test_a_file_that_grows_while_it_is_read_is_saved_as_it_was(
    full: Installation, empty: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = full.artifacts / "checkpoints" / "log"
    log.parent.mkdir()
    log.write_bytes(b"one")
    change_before_read(monkeypatch, log, lambda: log.write_bytes(b"one two"))
    empty.restore(full.back_up(tmp_path / "all.tar"))
    assert (empty.artifacts / "checkpoints" / "log").read_bytes() == b"one"


def test_a_file_that_becomes_shorter_is_left_out_with_a_note(
    full: Installation, empty: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = full.artifacts / "checkpoints" / "log"
    log.parent.mkdir()
    log.write_bytes(b"x" * 100)
    change_before_read(monkeypatch, log, lambda: os.truncate(log, 10))
    empty.restore(full.back_up(tmp_path / "all.tar"))
    assert not (empty.artifacts / "checkpoints" / "log").exists()
    assert (empty.artifacts / "ab" / "abcd").read_bytes() == b"weights"
    assert full.written.notes == (
        "artifacts/checkpoints/log became shorter while it was read; it is left out.",
    )


def test_files_that_vanish_during_the_backup_are_left_out(
    training: Installation, empty: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = backup._open

    def vanish(artifacts: Path, place: str) -> int | None:
        if place.endswith("best.npz"):
            (artifacts / place).unlink()
        return opened(artifacts, place)

    monkeypatch.setattr(backup, "_open", vanish)
    empty.restore(training.back_up(tmp_path / "all.tar"))
    assert not (empty.artifacts / NEWEST / "best.npz").exists()
    assert (empty.artifacts / NEWEST / "history.jsonl").exists()


def test_a_file_that_the_collection_moves_to_the_trash_meanwhile_is_saved(
    full: Installation, empty: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = "cd" * 32
    place, trash = full.artifacts / "cd" / digest, full.artifacts / ".trash" / digest
    place.parent.mkdir()
    place.write_bytes(b"weights of a deleted job")
    opened = backup._open

    def collect(artifacts: Path, name: str) -> int | None:
        if place.exists():
            trash.parent.mkdir()
            place.replace(trash)
            os.utime(trash)
        return opened(artifacts, name)

    monkeypatch.setattr(backup, "_open", collect)
    empty.restore(full.back_up(tmp_path / "all.tar"))
    assert (empty.artifacts / "cd" / digest).read_bytes() == b"weights of a deleted job"


def test_what_was_in_the_trash_before_is_not_saved(full: Installation, tmp_path: Path) -> None:
    digest = "cd" * 32
    (full.artifacts / ".trash").mkdir()
    (full.artifacts / ".trash" / digest).write_bytes(b"garbage")
    os.utime(full.artifacts / ".trash" / digest, (0, 0))
    with tarfile.open(full.back_up(tmp_path / "all.tar")) as tar:
        assert f"artifacts/cd/{digest}" not in tar.getnames()


def test_a_link_that_a_run_left_is_followed_only_to_files_of_the_store(
    full: Installation, empty: Installation, tmp_path: Path
) -> None:
    own = full.artifacts / "checkpoints" / "own-1"
    own.mkdir(parents=True)
    (tmp_path / "password").write_text("of the machine")
    (own / "outside").symlink_to(tmp_path / "password")
    (own / "inside").symlink_to(full.artifacts / "ab" / "abcd")
    os.mkfifo(own / "pipe")
    saved = full.back_up(tmp_path / "all.tar")
    assert b"of the machine" not in saved.read_bytes()
    assert [note.split(" ")[0] for note in full.written.notes] == [
        "artifacts/checkpoints/own-1/outside",
        "artifacts/checkpoints/own-1/pipe",
    ]
    empty.restore(saved)
    assert (empty.artifacts / "checkpoints" / "own-1" / "inside").read_bytes() == b"weights"


def test_checkpoints_on_another_disk_are_saved(
    training: Installation, empty: Installation, tmp_path: Path
) -> None:
    (training.artifacts / "checkpoints").rename(tmp_path / "disk")
    (training.artifacts / "checkpoints").symlink_to(tmp_path / "disk")
    empty.restore(training.back_up(tmp_path / "all.tar"))
    assert (empty.artifacts / NEWEST / "best.npz").read_bytes() == b"best"


@pytest.mark.parametrize("kind", [tarfile.LNKTYPE, tarfile.SYMTYPE])
@pytest.mark.parametrize("target", ["/etc/passwd", "../../secret.key", "artifacts/never"])
def test_a_link_to_anything_but_a_file_of_the_backup_is_refused(
    empty: Installation, tmp_path: Path, kind: bytes, target: str
) -> None:
    hostile = tmp_path / "hostile.tar"
    with tarfile.open(hostile, "w") as tar:
        member = tarfile.TarInfo("artifacts/ab/link")
        member.type, member.linkname = kind, target
        tar.addfile(member)
    with pytest.raises(OpsError, match="not part of a Trainyard backup"):
        empty.restore(hostile)


def test_damaged_and_missing_files_of_the_store_are_named(full: Installation, tmp_path: Path) -> None:
    digest = "ef" * 32
    (full.artifacts / "ef").mkdir()
    (full.artifacts / "ef" / digest).write_bytes(b"not its content")
    written = backup.back_up(
        full.home, full.database, full.artifacts, tmp_path / "all.tar", expected=[digest, "01" * 32]
    )
    assert written.notes == (
        f"artifacts/ef/{digest} is damaged in the store: its content has another digest.",
        "1 files that the database names are missing in the store: 010101010101.",
    )


def test_restored_checkpoints_are_in_a_new_folder_of_their_job(
    training: Installation, tmp_path: Path
) -> None:
    # Runners with users of their own cannot read files that are moved into a folder that is open to them.
    saved = training.back_up(tmp_path / "all.tar")
    (training.artifacts / "checkpoints" / "job-1" / "0000000030-1").mkdir()
    (training.artifacts / "checkpoints" / "job-1").chmod(0o750)
    training.restore(saved, force=True)
    assert (training.artifacts / "checkpoints" / "job-1").stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in (training.artifacts / "checkpoints" / "job-1").iterdir()) == [
        "0000000010-1",
        "0000000020-1",
    ]
