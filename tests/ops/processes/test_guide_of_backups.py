"""The commands of the guide's pages about backups and moves, as they are written."""

import configparser
import os
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.ops.conftest import ROOT
from tests.ops.guide_commands import Command, command, commands, page_path

pytestmark = pytest.mark.django_db  # the tables of the run are made for tests that use the database

BACKUPS = "/srv/backups"


class Operator:
    """Runs commands of the pages in an installation that has no running part."""

    def __init__(self, folder: Path, tables: Path) -> None:
        self.home, self.backups = folder / "home", folder / "backups"
        self.home.mkdir()
        shutil.copy(tables, self.home / "trainyard.sqlite3")
        self.environment = {
            "TRAINYARD_HOME": str(self.home),
            "DJANGO_SETTINGS_MODULE": "webapp.settings.main",
        }
        self.manage("adduser ada --admin")

    def run(self, written: Command, **replacements: str) -> str:
        places = {old: new for old, new in replacements.items() if old in written.script()}
        done = written.run(places, cwd=ROOT, timeout=240, **self.environment)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def manage(self, arguments: str) -> str:
        return self.run(Command(0, 0, (), f".venv/bin/python manage.py {arguments}"))

    def tables(self, file: Path) -> int:
        with closing(sqlite3.connect(file)) as database:
            return len(database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall())


@pytest.fixture
def operator(tmp_path: Path, migrated: Path | None, monkeypatch: pytest.MonkeyPatch) -> Operator:
    if migrated is None:
        pytest.skip("the tests use no SQLite")
    for name in [name for name in os.environ if name.startswith("TRAINYARD_")]:
        monkeypatch.delenv(name)
    return Operator(tmp_path, migrated)


def test_a_backup_is_made_verified_tried_and_restored(operator: Operator, tmp_path: Path) -> None:
    places = {BACKUPS: str(operator.backups), "/tmp/trainyard-trial": str(tmp_path / "trial")}
    operator.run(command(18, "mkdir -p"), **places)
    assert "read back" in operator.run(command(18, "backup /srv/backups/trainyard.tar"), **places)
    assert "can be restored" in operator.run(command(18, "backup --verify"), **places)
    old = operator.backups / "trainyard-2020-01-01.tar"
    old.write_bytes(b"")
    os.utime(old, (0, 0))
    operator.run(command(18, "$(date +%F)"), **places)
    assert len(list(operator.backups.glob("trainyard-2*.tar"))) == 1
    assert not old.exists()

    trial = next(each for each in commands(18) if "restore" in each.text and each.setting)
    assert "files restored" in operator.run(trial, **places)
    assert "is valid" in operator.run(command(18, "audit verify --anchor"), **places)
    assert "program" in operator.run(command(18, "manage.py version"), **places)
    operator.run(command(18, "rm -rf"), **places)
    assert not (tmp_path / "trial").exists()

    shutil.rmtree(operator.home)
    # The trial of it is the same line with other variables.
    restore = next(each for each in commands(18) if "restore" in each.text and not each.setting)
    assert "files restored" in operator.run(restore, **places)
    assert operator.tables(operator.home / "trainyard.sqlite3") > 50


def test_the_page_names_the_units_of_the_folder_and_the_crontab_a_script() -> None:
    text = page_path(18).read_text()
    assert "[Service]" not in text, "the folder has the units; others of the same names would replace them"
    service, timer = (read_unit(f"trainyard-backup.{kind}") for kind in ("service", "timer"))
    assert f"`{service['Service']['EnvironmentFile'].removeprefix('-')}`" in text
    *_, folder, option, kept = service["Service"]["ExecStart"].split()
    assert f"`{folder}`, keep the last seven" in text
    assert (option, kept) == ("--keep", "7")
    # Also without the target, as the page starts it beside the unit for everything.
    assert timer["Install"]["WantedBy"].split() == ["trainyard.target", "timers.target"]
    (cron,) = re.findall(r"^\d+ \d+ \* \* \* (.*)$", text, re.MULTILINE)
    assert cron.startswith("cd /srv/trainyard && ./backup.sh")


def read_unit(name: str) -> configparser.RawConfigParser:
    unit = configparser.RawConfigParser(strict=False, delimiters=("=",))
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(ROOT / "deploy" / "systemd" / name)
    return unit


def test_a_database_is_moved_to_a_file_and_keys_are_rotated(operator: Operator, tmp_path: Path) -> None:
    new = tmp_path / "new" / "trainyard.sqlite3"
    new.parent.mkdir()
    moved = operator.run(command(19, "sqlite:///"), **{"/srv/trainyard/trainyard.sqlite3": str(new)})
    assert "are the same in both databases" in moved
    assert f"TRAINYARD_DATABASE_URL=sqlite:///{new}" in moved
    assert operator.tables(new) == operator.tables(operator.home / "trainyard.sqlite3")

    rotate = next(each for each in commands(19) if each.text.endswith("rotate-keys"))
    assert "has the next key" in operator.run(command(19, "rotate-keys --prepare"))
    assert "signs now" in operator.run(rotate)
    assert "signs now" in operator.run(command(19, "rotate-keys --overlap 0m"))
    assert "no former key" in operator.run(command(19, "rotate-keys --forget"))
    assert "has the next key" in operator.run(command(19, "--releases --prepare"))
    releases = next(each for each in commands(19) if each.text.endswith("--releases"))
    assert "signed with a new key" in operator.run(releases)
    assert "no former key" in operator.run(command(19, "--releases --forget"))
    assert "is valid" in operator.manage("audit verify")
