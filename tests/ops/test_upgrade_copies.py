"""An upgrade copies the database once, however often its migrations are interrupted."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from webapp.ops.database import upgrade_copies
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

    def make(self, applied: set[tuple[str, str]]) -> str:
        return upgrade_copies.make(self.home, self.database, applied)


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
