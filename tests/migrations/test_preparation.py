"""`up` copies and migrates an older database before the parts start.

Of all apps only three have migrations here: those of the others take seconds, and nothing here depends on
them.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.ops.conftest import ROOT, needs_postgres, new_database
from webapp.ops import preparation

AN_OLDER_DATABASE = """
import django
django.setup()
from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from webapp.ops.home import Home
from webapp.ops.preparation import migrate
migrated = {"auth", "contenttypes", "sessions"}
settings.MIGRATION_MODULES = dict.fromkeys({app.label for app in apps.get_app_configs()} - migrated)
home = Home(settings.HOME)
home.create()
migrate(home, lambda line: print("new:", line))
call_command("migrate", "sessions", "zero", verbosity=0)
migrate(home, lambda line: print("older:", line))
migrate(home, lambda line: print("current:", line))
"""


def migrate_an_older_database(home: Path, **environment: str) -> list[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRAINYARD_")}
    settings = {"TRAINYARD_HOME": str(home), "DJANGO_SETTINGS_MODULE": "webapp.settings.main"}
    done = subprocess.run(
        [sys.executable, "-c", AN_OLDER_DATABASE],
        cwd=ROOT,
        env=inherited | settings | environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def has_sessions(database: Path) -> bool:
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'django_session'")
        return rows.fetchone() is not None


def test_an_older_database_is_copied_and_then_migrated(tmp_path: Path) -> None:
    new, older, migrating = migrate_an_older_database(tmp_path)
    assert new == "new: Creating the database."  # there was nothing to copy
    (copy,) = (tmp_path / "backups").iterdir()
    assert older == f"older: The database is older than this program; its copy is {copy}."
    assert migrating == "older: Migrating the database (1 to apply)."
    assert has_sessions(tmp_path / "trainyard.sqlite3")
    assert not has_sessions(copy)


@needs_postgres
def test_an_older_postgres_database_is_dumped_and_then_migrated(tmp_path: Path) -> None:
    with new_database() as (url, connection):
        said = migrate_an_older_database(tmp_path, TRAINYARD_DATABASE_URL=url)
        assert connection.execute("SELECT to_regclass('django_session')").fetchone() != (None,)
    (dump,) = (tmp_path / "backups").iterdir()
    assert said[1] == f"older: The database is older than this program; its copy is {dump}."
    listed = subprocess.run(["pg_restore", "--list", str(dump)], capture_output=True, text=True, check=True)
    assert "TABLE public auth_permission " in listed.stdout
    assert "django_session" not in listed.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is a program for Linux")
def test_the_operator_learns_how_to_get_the_strongest_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    assert "`apt install bubblewrap`" in (preparation.sandbox_hint({}) or "")
    assert preparation.sandbox_hint({"TRAINYARD_SANDBOX_LEVELS": "landlock"}) is None
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert preparation.sandbox_hint({}) is None
