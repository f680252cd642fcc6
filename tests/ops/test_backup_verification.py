"""A backup is read back before it counts, and names its reasons; keys outside the home are in it."""

import gzip
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.ops.test_backup import Installation, empty, full
from webapp.ops import backup
from webapp.ops.backup_file import BackupWriter
from webapp.ops.errors import OpsError
from webapp.ops.home import Home

__all__ = ["empty", "full"]


def test_a_backup_that_differs_when_it_is_read_back_fails_and_leaves_the_older_one(
    full: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = full.back_up(tmp_path / "all.tar")
    before = saved.read_bytes()
    finish = BackupWriter.finish

    def damaged(writer: BackupWriter, facts: dict[str, object]) -> None:
        writer.digests["artifacts/ab/abcd"] = "0" * 64
        finish(writer, facts)

    monkeypatch.setattr(BackupWriter, "finish", damaged)
    with pytest.raises(OpsError, match=r"is damaged: artifacts/ab/abcd"):
        full.back_up(saved)
    assert saved.read_bytes() == before
    assert not list(tmp_path.glob(".all*"))


@pytest.mark.parametrize("damage", ["byte", "end", "empty", "text", "missing"])
def test_a_damaged_backup_is_not_verified(full: Installation, tmp_path: Path, damage: str) -> None:
    saved = full.back_up(tmp_path / "all.tar")
    call_command("backup", "--verify", str(saved))
    match damage:
        case "byte":
            saved.write_bytes(saved.read_bytes().replace(b"weights", b"weightz"))
        case "end":
            os.truncate(saved, saved.stat().st_size // 2)
        case "empty":
            os.truncate(saved, 0)
        case "text":
            saved.write_text("no backup")
        case "missing":
            saved.unlink()
    with pytest.raises(CommandError, match=r"all\.tar"):
        call_command("backup", "--verify", str(saved))


def test_a_damaged_database_in_an_unchanged_file_is_found(full: Installation, tmp_path: Path) -> None:
    with closing(full.connect()) as connection:
        connection.executemany("INSERT INTO point VALUES (?)", [(n,) for n in range(10_000)])
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path = Path(full.database["NAME"])
    content = bytearray(path.read_bytes())
    content[8192:8400] = os.urandom(208)
    path.write_bytes(content)
    with pytest.raises((OpsError, sqlite3.DatabaseError), match="database"):
        full.back_up(tmp_path / "all.tar")
    assert not (tmp_path / "all.tar").exists()


def test_a_compressed_backup_is_read(full: Installation, empty: Installation, tmp_path: Path) -> None:
    saved = full.back_up(tmp_path / "all.tar")
    packed = tmp_path / "all.tar.gz"
    packed.write_bytes(gzip.compress(saved.read_bytes()))
    empty.restore(packed)
    assert empty.points() == 1


def test_a_key_outside_the_home_is_restored_to_its_place(
    full: Installation, empty: Installation, tmp_path: Path
) -> None:
    full.secret_key.write_text("unused: the home had it before")
    for installation, name in ((full, "there"), (empty, "here")):
        installation.secret_key = tmp_path / name / "secret"
        installation.secret_key.parent.mkdir()
    full.secret_key.write_text("of the operator")
    empty.secret_key.write_text("made by the first command")
    empty.restore(full.back_up(tmp_path / "all.tar"))
    assert empty.secret_key.read_text() == "of the operator"
    (kept,) = empty.secret_key.parent.glob("secret.before-*")
    assert kept.read_text() == "made by the first command"
    assert not (empty.home.root / "secret.key").exists()


def test_a_key_that_cannot_be_read_refuses_the_backup(full: Installation, tmp_path: Path) -> None:
    full.secret_key = tmp_path / "nowhere" / "secret"
    with pytest.raises(OpsError, match=r"The key .*nowhere/secret cannot be read \(No such file"):
        full.back_up(tmp_path / "all.tar")
    assert not list(tmp_path.glob("*all.tar*"))


def test_the_public_key_of_another_private_key_does_not_remain(full: Installation, tmp_path: Path) -> None:
    (full.home.root / "release.key").write_text("of the backup")
    saved = full.back_up(tmp_path / "all.tar")
    (full.home.root / "release.key").write_text("newer")
    (full.home.root / "release.pub").write_text("made from the newer one")
    full.restore(saved, force=True)
    assert (full.home.root / "release.key").read_text() == "of the backup"
    assert not (full.home.root / "release.pub").exists()


def test_two_backups_to_one_file_do_not_mix(full: Installation, tmp_path: Path) -> None:
    target = tmp_path / "all.tar"
    with (tmp_path / ".all.tar.partial").open("w") as first, backup._locked(tmp_path / "."):
        import fcntl

        fcntl.flock(first, fcntl.LOCK_EX)
        with pytest.raises(OpsError, match="Another backup writes"):
            full.back_up(target)
    full.back_up(target)


def test_copies_of_the_database_that_a_killed_backup_left_are_removed(
    full: Installation, tmp_path: Path
) -> None:
    left = full.home.run / "backup-killed"
    left.mkdir()
    (left / "database.sqlite3").write_bytes(b"large")
    with backup.scratch_folder(Home(full.home.root)) as used:
        assert not left.exists()
        full.back_up(tmp_path / "all.tar")
        assert used.exists()
    assert not list(full.home.run.glob("backup-*"))
