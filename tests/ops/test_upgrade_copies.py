"""An upgrade copies the database once, however often its migrations are interrupted."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from webapp.ops.database import upgrade_copies
from webapp.ops.errors import OpsError
from webapp.ops.home import Home

FORMER, HALF = {("jobs", "0001")}, {("jobs", "0001"), ("jobs", "0002")}


class Upgraded:
    """A home whose database has one value, and copies of it."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root)
        self.home.create()
        self.database: dict[str, Any] = {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(root / "db.sqlite3"),
        }

    def write(self, value: str) -> None:
        with closing(sqlite3.connect(self.database["NAME"])) as connection:
            connection.executescript(
                f"DROP TABLE IF EXISTS state; CREATE TABLE state AS SELECT '{value}' AS value"
            )

    def copies(self) -> list[str]:
        found = []
        for path in sorted(self.home.backups.glob("before-migration-*")):
            with closing(sqlite3.connect(path)) as connection:
                found.append(str(connection.execute("SELECT value FROM state").fetchone()[0]))
        return found

    def make(self, applied: set[tuple[str, str]], *, may_go_without: bool = False) -> str:
        return upgrade_copies.make(self.home, self.database, applied, may_go_without=may_go_without)


@pytest.fixture
def upgraded(tmp_path: Path) -> Upgraded:
    return Upgraded(tmp_path / "home")


def test_a_copy_of_a_state_in_between_never_replaces_that_of_the_former_version(upgraded: Upgraded) -> None:
    upgraded.write("former")
    first = upgraded.make(FORMER)
    upgraded.write("half migrated")
    for _ in range(7):
        assert "from before the interrupted upgrade" in upgraded.make(HALF)
    assert upgraded.copies() == ["former"]
    assert first.endswith(".sqlite3")


@pytest.mark.parametrize("ended", [True, False])
def test_a_later_upgrade_is_copied_again(upgraded: Upgraded, ended: bool) -> None:
    upgraded.write("former")
    upgraded.make(FORMER)
    for path in upgraded.home.backups.glob("before-*"):
        path.rename(path.with_name("before-migration-20200101T000000.sqlite3"))
    # Without an end, no migration was applied, and the former version may have written since.
    if ended:
        upgrade_copies.note_end(upgraded.home)
    upgraded.write("later")
    upgraded.make(HALF if ended else FORMER)
    assert upgraded.copies() == ["former", "later"]


def test_a_copy_that_was_killed_is_none(upgraded: Upgraded, monkeypatch: pytest.MonkeyPatch) -> None:
    def be_killed(_source: Path, target: Path) -> None:
        target.write_bytes(b"SQLite")
        raise KeyboardInterrupt

    upgraded.write("former")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(upgrade_copies, "copy_sqlite", be_killed)
        upgraded.make(FORMER)
    assert upgraded.copies() == []
    upgraded.make(FORMER)
    assert upgraded.copies() == ["former"]
    assert len(list(upgraded.home.backups.iterdir())) == 2


def full_disk(_source: Path, target: Path) -> None:
    target.write_bytes(b"SQLite")
    raise sqlite3.OperationalError("database or disk is full")


def test_a_copy_that_fails_refuses_the_upgrade_with_its_reason_and_what_would_do(
    upgraded: Upgraded, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgraded.write("former")
    with monkeypatch.context() as patch:
        patch.setattr(upgrade_copies, "copy_sqlite", full_disk)
        with pytest.raises(OpsError, match=r"disk is full.* not migrated.*TRAINYARD_UPGRADE_WITHOUT_COPY=1"):
            upgraded.make(FORMER)
        assert list(upgraded.home.backups.iterdir()) == []
        assert "disk is full" in upgraded.make(FORMER, may_go_without=True)
    upgraded.make(FORMER)
    assert upgraded.copies() == ["former"]


@pytest.fixture
def pg_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the place of the program, in a folder that is the whole PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "pg_dump"


def test_a_dump_that_fails_refuses_the_upgrade_and_a_missing_program_does_not(
    upgraded: Upgraded, pg_dump: Path
) -> None:
    upgraded.database = {"ENGINE": "django.db.backends.postgresql", "NAME": "yard"}
    assert "no copy was made: A PostgreSQL database needs `pg_dump`" in upgraded.make(FORMER)
    pg_dump.write_text("#!/bin/sh\necho 'could not write: No space left on device' >&2\nexit 1\n")
    pg_dump.chmod(0o700)
    with pytest.raises(OpsError, match="pg_dump failed: could not write: No space left on device"):
        upgraded.make(FORMER)
    assert "No space left" in upgraded.make(FORMER, may_go_without=True)
    assert list(upgraded.home.backups.iterdir()) == []
