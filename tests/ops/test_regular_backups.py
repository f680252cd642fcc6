"""Regular backups: old ones are deleted only after a new one, and a late one is reported."""

import fcntl
import os
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db.migrations.recorder import MigrationRecorder

from tests.ops.test_backup import Installation, empty_database, full
from webapp.ops import regular_backups
from webapp.ops.errors import OpsError
from webapp.ops.regular_backups import back_up_into, backups_in, require_recent, seconds_until_due

__all__ = ["full"]

DAY = timedelta(days=1)


def add(folder: Path, name: str, *, age: timedelta) -> Path:
    file = folder / f"trainyard-{name}.tar"
    file.write_bytes(b"old")
    moment = time.time() - age.total_seconds()
    os.utime(file, (moment, moment))
    return file


def write(file: Path) -> None:
    file.write_bytes(b"new")


def refuse(file: Path) -> None:
    raise OpsError("the disk is full")


def test_a_new_backup_replaces_the_oldest_and_other_files_stay(tmp_path: Path) -> None:
    oldest, older = add(tmp_path, "20260101T000000Z", age=2 * DAY), add(tmp_path, "20260102T000000Z", age=DAY)
    (tmp_path / "trainyard-notes.txt").write_text("mine")
    new = back_up_into(tmp_path, write, keep=2)
    assert backups_in(tmp_path) == [older, new]
    assert not oldest.exists()
    assert (tmp_path / "trainyard-notes.txt").exists()


def test_a_backup_that_fails_deletes_nothing(tmp_path: Path) -> None:
    files = [add(tmp_path, f"2026010{day}T000000Z", age=DAY) for day in range(1, 5)]
    with pytest.raises(OpsError, match="disk is full"):
        back_up_into(tmp_path, refuse, keep=1)
    assert backups_in(tmp_path) == files


def test_what_a_killed_backup_left_is_removed_but_not_what_is_being_written(tmp_path: Path) -> None:
    left, busy = tmp_path / ".trainyard-20260101T000000Z.tar.partial", tmp_path / ".trainyard-2.tar.partial"
    left.write_bytes(b"half")
    with busy.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        back_up_into(tmp_path, write, keep=7)
        assert (left.exists(), busy.exists()) == (False, True)


def test_the_next_one_is_due_after_the_interval_also_after_a_restart(tmp_path: Path) -> None:
    assert seconds_until_due(tmp_path, DAY) == 0
    file = add(tmp_path, "20260101T000000Z", age=timedelta(hours=18))
    assert seconds_until_due(tmp_path, DAY) == pytest.approx(6 * 3600, abs=60)
    os.utime(file, (time.time() + 10**6,) * 2)
    assert seconds_until_due(tmp_path, DAY) == DAY.total_seconds()


def test_a_missing_and_a_late_backup_are_reported(tmp_path: Path) -> None:
    with pytest.raises(OpsError, match="There is no backup"):
        require_recent(tmp_path, DAY)
    add(tmp_path, "20260101T000000Z", age=timedelta(hours=47))
    require_recent(tmp_path, DAY)
    with pytest.raises(CommandError, match="1 day, 23:00:0"):
        call_command("backups", str(tmp_path), "--every=12h", "--check")


@pytest.mark.parametrize("arguments", [["--every=often"], ["--keep=0"], ["--every=0m"]])
def test_arguments_that_cannot_be_read_are_refused(tmp_path: Path, arguments: list[str]) -> None:
    with pytest.raises(CommandError, match="is no "):
        call_command("backups", str(tmp_path), *arguments)


def test_a_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="is no folder"):
        call_command("backups", str(tmp_path / "missing"))


def test_the_service_goes_on_after_a_failed_backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 4:
            raise SystemExit

    def fail(command: str, *arguments: str, **options: object) -> None:
        raise CommandError("the database is away")

    monkeypatch.setattr("webapp.management.commands.backups.time.sleep", wait)
    monkeypatch.setattr("webapp.management.commands.backups.signal.signal", lambda *_: None)
    monkeypatch.setattr("webapp.management.commands.backups.call_command", fail)
    with pytest.raises(SystemExit):
        call_command("backups", str(tmp_path), "--every=24h")
    assert waits == [0, regular_backups.RETRY.total_seconds()] * 2


@pytest.mark.django_db
@pytest.mark.parametrize("arguments", [["backups", "--keep=1"], ["backups", "--check"], ["backup"]])
def test_a_home_without_an_installation_is_refused_and_no_backup_is_deleted(
    tmp_path: Path, arguments: list[str]
) -> None:
    MigrationRecorder.Migration.objects.filter(app="jobs").delete()
    present = add(tmp_path, "20260101T000000Z", age=timedelta())
    command, *options = arguments
    with pytest.raises(CommandError, match=r"The database is empty: .*TRAINYARD_HOME, which is /"):
        call_command(command, str(tmp_path / "all.tar" if command == "backup" else tmp_path), *options)
    assert list(tmp_path.iterdir()) == [present]


def test_a_backup_of_an_empty_database_does_not_replace_older_ones(
    full: Installation, tmp_path: Path
) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    present = add(folder, "20260101T000000Z", age=DAY)
    empty_database(full)
    with pytest.raises(OpsError, match="its database has no tables of Trainyard"):
        back_up_into(folder, full.back_up, keep=1)
    assert list(folder.iterdir()) == [present]
