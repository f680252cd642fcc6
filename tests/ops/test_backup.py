"""Backup and restore: complete, verified, and never over existing data."""

import os
import sqlite3
import stat
import tarfile
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.actions.own_installation import IDENTITY_FILE
from webapp.ops.backup import back_up
from webapp.ops.database_copies import copy_sqlite, dump_postgres
from webapp.ops.errors import OpsError
from webapp.ops.home import Home
from webapp.ops.lock import HomeLock
from webapp.ops.restore import restore
from webapp.ops.restored_files import Destination


class Installation:
    """A home with a database and an artifact, and the arguments that name them."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root)
        self.home.create()
        self.artifacts = root / "artifacts"
        self.secret_key = root / "secret.key"
        self.database: dict[str, Any] = {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(root / "trainyard.sqlite3"),
        }

    def fill(self) -> "Installation":
        self.secret_key.write_text("secret")
        (self.artifacts / "ab").mkdir(parents=True)
        (self.artifacts / "ab" / "abcd").write_bytes(b"weights")
        (self.artifacts / ".tmp-1").write_bytes(b"half written")
        with closing(self.connect()) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("CREATE TABLE jobs_project (id INTEGER)")
            connection.execute("CREATE TABLE point (value INTEGER)")
            connection.execute("INSERT INTO point VALUES (1)")
            connection.commit()
        return self

    def connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.database["NAME"], timeout=20)

    def points(self) -> int:
        with closing(self.connect()) as connection:
            return int(connection.execute("SELECT count(*) FROM point").fetchone()[0])

    def back_up(self, target: Path) -> Path:
        self.written = back_up(self.home, self.database, self.artifacts, target, secret_key=self.secret_key)
        return target

    def restore(self, source: Path, *, force: bool = False) -> None:
        restore(self.home, self.database, self.artifacts, source, force=force, secret_key=self.secret_key)


@pytest.fixture
def full(tmp_path: Path) -> Installation:
    return Installation(tmp_path / "full").fill()


@pytest.fixture
def empty(tmp_path: Path) -> Installation:
    return Installation(tmp_path / "empty")


def test_a_backup_restores_everything(full: Installation, empty: Installation, tmp_path: Path) -> None:
    empty.restore(full.back_up(tmp_path / "all.tar"))
    assert empty.points() == 1
    assert (empty.artifacts / "ab" / "abcd").read_bytes() == b"weights"
    assert (empty.home.root / "secret.key").read_text() == "secret"
    assert not list(empty.home.root.rglob(".tmp-*"))
    assert not list(empty.home.root.glob(".restore-*"))


def test_a_backup_is_readable_only_by_its_owner(full: Installation, tmp_path: Path) -> None:
    assert stat.S_IMODE(full.back_up(tmp_path / "all.tar").stat().st_mode) == 0o600


def test_a_backup_made_during_writes_is_consistent(
    full: Installation, empty: Installation, tmp_path: Path
) -> None:
    stop = threading.Event()

    def write() -> None:
        with closing(full.connect()) as connection:
            while not stop.is_set():
                connection.executemany("INSERT INTO point VALUES (?)", [(n,) for n in range(10)])
                connection.commit()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        saved = full.back_up(tmp_path / "all.tar")
    finally:
        stop.set()
        writer.join()
    empty.restore(saved)
    assert empty.points() % 10 == 1  # whole transactions


def test_a_damaged_backup_is_refused_and_changes_nothing(
    full: Installation, empty: Installation, tmp_path: Path
) -> None:
    saved = full.back_up(tmp_path / "all.tar")
    saved.write_bytes(saved.read_bytes().replace(b"weights", b"weightz"))
    with pytest.raises(OpsError, match=r"is damaged: artifacts/ab/abcd"):
        empty.restore(saved)
    assert {path.name for path in empty.home.root.iterdir()} <= {
        *("run", "log", "broker"),
        "trainyard.sqlite3.parts",
    }


def test_a_truncated_backup_is_refused(full: Installation, empty: Installation, tmp_path: Path) -> None:
    saved = full.back_up(tmp_path / "all.tar")
    os.truncate(saved, 4096)
    with pytest.raises(OpsError, match=r"cannot be read as a backup|has no manifest"):
        empty.restore(saved)


@pytest.mark.parametrize("name", ["../escaped", "/tmp/escaped"])
def test_a_member_that_leads_out_of_the_home_is_refused(
    empty: Installation, tmp_path: Path, name: str
) -> None:
    hostile = tmp_path / "hostile.tar"
    with tarfile.open(hostile, "w") as tar:
        tar.addfile(tarfile.TarInfo(name))
    with pytest.raises(OpsError, match="not part of a Trainyard backup"):
        empty.restore(hostile)
    assert not (empty.home.root / "escaped").exists()


def test_a_home_that_is_not_empty_is_replaced_only_with_force(full: Installation, tmp_path: Path) -> None:
    saved = full.back_up(tmp_path / "all.tar")
    with closing(full.connect()) as connection:
        connection.execute("INSERT INTO point VALUES (2)")
        connection.commit()
    with pytest.raises(OpsError, match="is not empty"):
        full.restore(saved)
    full.restore(saved, force=True)
    assert full.points() == 1


def test_artifacts_without_a_folder_are_refused_and_nothing_changes(
    full: Installation, empty: Installation, tmp_path: Path
) -> None:
    source = full.back_up(tmp_path / "backup.tar")
    with pytest.raises(OpsError, match=r"is no local folder"):
        restore(empty.home, empty.database, None, source, force=False)
    assert not Path(empty.database["NAME"]).exists()
    assert not (empty.home.root / "secret.key").exists()


@pytest.mark.parametrize("force", [False, True])
def test_a_home_in_use_is_not_restored_even_with_force(
    full: Installation, empty: Installation, tmp_path: Path, force: bool
) -> None:
    saved = full.back_up(tmp_path / "all.tar")
    lock = HomeLock(empty.home.lock_file)
    lock.acquire()
    with pytest.raises(OpsError, match="already runs"):
        empty.restore(saved, force=force)
    lock.release()


def test_a_failed_backup_keeps_the_older_file(full: Installation, tmp_path: Path) -> None:
    saved = full.back_up(tmp_path / "all.tar")
    before = saved.read_bytes()
    full.database["NAME"] = str(tmp_path / "nowhere" / "none.sqlite3")
    with pytest.raises(sqlite3.OperationalError):
        full.back_up(saved)
    assert saved.read_bytes() == before
    assert not list(tmp_path.glob(".all*"))


def test_missing_postgres_tools_are_reported_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(OpsError, match="needs `pg_dump`"):
        dump_postgres({"NAME": "x"}, tmp_path / "dump")


def test_a_restored_home_belongs_to_no_installation_until_it_starts(
    full: Installation, empty: Installation, tmp_path: Path
) -> None:
    saved = full.back_up(tmp_path / "all.tar")
    identity = empty.home.root / IDENTITY_FILE
    identity.write_text("f" * 32)
    empty.restore(saved, force=True)
    assert not identity.exists()


def test_checkpoints_in_the_home_that_the_restored_database_does_not_know_are_removed(
    full: Installation, tmp_path: Path
) -> None:
    recorded, later = "job-1/0000000010-1", "job-1/0000000020-1"
    with closing(full.connect()) as connection:
        connection.execute("CREATE TABLE jobs_checkpoint (folder TEXT, removed TEXT)")
        connection.execute("INSERT INTO jobs_checkpoint (folder) VALUES (?)", [recorded])
        connection.commit()
    saved = full.back_up(tmp_path / "all.tar")
    cache = full.home.root / "artifact-cache" / "checkpoints"
    for folder in (recorded, later):
        (cache / folder).mkdir(parents=True)
    full.restore(saved, force=True)
    assert [path.name for path in (cache / "job-1").iterdir()] == ["0000000010-1"]


def test_a_restored_copy_of_the_database_is_private(full: Installation, tmp_path: Path) -> None:
    copy_sqlite(Path(full.database["NAME"]), copy := tmp_path / "before-migration.sqlite3")
    before = os.umask(0o022)
    try:
        full.restore(copy, force=True)
    finally:
        os.umask(before)
    assert stat.S_IMODE(Path(full.database["NAME"]).stat().st_mode) == 0o600


def empty_database(installation: Installation) -> None:
    """Remove the tables of the installation; those of other programs stay."""
    with closing(installation.connect()) as connection:
        connection.execute("DROP TABLE jobs_project")
        connection.commit()


def test_a_copy_of_an_empty_database_is_not_restored(full: Installation, tmp_path: Path) -> None:
    kept = full.points()
    other = Installation(tmp_path / "other").fill()
    empty_database(other)
    copy_sqlite(Path(other.database["NAME"]), copy := tmp_path / "empty.sqlite3")
    with pytest.raises(OpsError, match=r"empty\.sqlite3 is no backup of an installation"):
        full.restore(copy, force=True)
    assert full.points() == kept


def test_a_backup_of_another_kind_of_database_names_the_way_to_this_one(
    empty: Installation, tmp_path: Path
) -> None:
    postgres = {"ENGINE": "django.db.backends.postgresql", "NAME": "new"}
    for database, member, way in (
        (
            empty.database,
            "database.pgdump",
            r"Set TRAINYARD_DATABASE_URL=postgre.* move-database sqlite:",
        ),
        (
            postgres,
            "database.sqlite3",
            r"database new\. Unset TRAINYARD_DATABASE_URL.* move-database p",
        ),
    ):
        scratch = tmp_path / member
        scratch.mkdir()
        (scratch / member).touch()
        destination = Destination(empty.home, database, empty.artifacts, empty.secret_key, identity="a" * 32)
        with pytest.raises(OpsError, match=way):
            destination.check(scratch)


LIVE = "(name TEXT, holder TEXT, until TEXT)", "(name TEXT, host TEXT, state TEXT, lease_until TEXT)"


def add_parts(installation: Installation, until: datetime) -> None:
    """Add a scheduler and a worker on other machines, which have renewed their leases until this time."""
    text = f"{until.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"
    with closing(installation.connect()) as connection:
        for table, columns in zip(("jobs_lease", "jobs_worker"), LIVE, strict=True):
            connection.execute(f"CREATE TABLE {table} {columns}")
        connection.execute("INSERT INTO jobs_lease VALUES ('scheduler', 'far:7', ?)", [text])
        connection.execute("INSERT INTO jobs_worker VALUES ('b', 'far', 'up', ?)", [text])
        connection.execute("INSERT INTO jobs_worker VALUES ('c', 'far', 'gone', ?)", [text])
        connection.commit()


def test_a_database_that_parts_on_other_machines_use_is_not_replaced(
    full: Installation, tmp_path: Path
) -> None:
    saved = full.back_up(tmp_path / "all.tar")
    add_parts(full, datetime.now(UTC) + timedelta(seconds=10))
    with pytest.raises(OpsError, match=r"in use by the scheduler far:7, worker b on far\. Stop all parts"):
        full.restore(saved, force=True)
    assert not list(full.home.root.glob("restore.*"))


def test_parts_that_were_killed_do_not_hinder_a_restore_for_long(full: Installation, tmp_path: Path) -> None:
    saved = full.back_up(tmp_path / "all.tar")
    add_parts(full, datetime.now(UTC) - timedelta(seconds=1))
    full.restore(saved, force=True)
    assert full.points() == 1


def test_workers_that_the_restored_database_knows_have_no_place_in_it_any_more(
    full: Installation, tmp_path: Path
) -> None:
    """One that was cut off may still run: it must register again, and write nothing under its former id."""
    with closing(full.connect()) as connection:
        connection.execute("CREATE TABLE jobs_worker (name TEXT, state TEXT, process TEXT)")
        rows = [("a", "up", "p"), ("b", "draining", "q"), ("c", "gone", "r")]
        connection.executemany("INSERT INTO jobs_worker VALUES (?, ?, ?)", rows)
        connection.commit()
    full.restore(full.back_up(tmp_path / "all.tar"), force=True)
    with closing(full.connect()) as connection:
        found = connection.execute("SELECT * FROM jobs_worker ORDER BY name").fetchall()
    assert found == [("a", "lost", ""), ("b", "lost", ""), ("c", "gone", "r")]
