"""Copies of the audit chain's head in backups and in the log."""

import json
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import threading
from contextlib import closing
from pathlib import Path

import pytest
from django.db import transaction
from django.utils.crypto import salted_hmac

from jobs import scheduler
from jobs.actions import audit
from jobs.audit_chain import HEAD_SALT
from jobs.models import AuditEvent
from jobs.queries import audit_anchors
from tests.ops.conftest import ROOT
from webapp.ops.backup import back_up
from webapp.ops.home import Home
from webapp.settings.logs import logging_settings

ADD_TWO = """
from django.core.management import call_command
for name in ("ada", "grace"):
    call_command("adduser", name)
"""


def manage(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRAINYARD_")}
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        cwd=ROOT,
        env=kept | {"TRAINYARD_HOME": str(home), "DJANGO_SETTINGS_MODULE": "webapp.settings.main"},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Path:
    """An installation with a few rows in the audit log."""
    folder = tmp_path_factory.mktemp("home")
    shutil.copy(migrated, folder / "trainyard.sqlite3")
    added = manage(folder, "shell", "--no-imports", "-c", ADD_TWO)
    assert added.returncode == 0, added.stderr
    return folder


@pytest.fixture(scope="module")
def backup(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("backups") / "all.tar"
    made = manage(home, "backup", str(file))
    assert made.returncode == 0, made.stderr
    return file


def manifest_of(backup: Path) -> dict[str, object]:
    with tarfile.open(backup) as tar:
        member = tar.extractfile("manifest.json")
        assert member is not None
        return dict(json.load(member))


def drop_last_rows(home: Path) -> None:
    """Leave one row and make it the head, as someone who has the key could."""
    secret = (home / "secret.key").read_text().strip()
    with closing(sqlite3.connect(home / "trainyard.sqlite3")) as database:
        database.execute("DELETE FROM jobs_auditevent WHERE number > 1")
        (last,) = database.execute("SELECT hash FROM jobs_auditevent").fetchone()
        mac = salted_hmac(HEAD_SALT, f"1 {last}", secret=secret, algorithm="sha256").hexdigest()
        database.execute("UPDATE jobs_audithead SET number = 1, hash = ?, mac = ?", (last, mac))
        database.commit()


def delete_last_rows(home: Path) -> None:
    """Leave one row, and the head as it is."""
    with closing(sqlite3.connect(home / "trainyard.sqlite3")) as database:
        database.execute("DELETE FROM jobs_auditevent WHERE number > 1")
        database.commit()


def test_a_backup_names_the_last_row(home: Path, backup: Path) -> None:
    with closing(sqlite3.connect(home / "trainyard.sqlite3")) as database:
        row = database.execute("SELECT number, hash FROM jobs_audithead").fetchone()
    assert manifest_of(backup)["audit"] == {"number": row[0], "hash": row[1]}
    assert row[0] >= 2


def test_a_restored_audit_log_is_compared_with_the_manifest(backup: Path, tmp_path: Path) -> None:
    restored = manage(tmp_path / "new", "restore", str(backup))
    assert restored.returncode == 0, restored.stderr
    assert "The audit chain is valid" in restored.stdout


def test_a_backup_shows_rows_that_are_missing_later(home: Path, backup: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(home, other)
    assert manage(other, "audit", "verify", "--anchor", str(backup)).returncode == 0
    drop_last_rows(other)
    assert manage(other, "audit", "verify").returncode == 0
    found = manage(other, "audit", "verify", "--anchor", str(backup))
    assert found.returncode == 1
    assert "The last rows are missing" in found.stderr


def test_a_backup_with_fewer_rows_than_its_manifest_says_so_when_it_is_restored(
    home: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(home, other)
    delete_last_rows(other)
    saved = tmp_path / "less.tar"
    assert manage(other, "backup", str(saved)).returncode == 0
    restored = manage(tmp_path / "new", "restore", str(saved))
    assert "The restored audit log is not valid. The last rows are missing" in restored.stderr


def test_an_earlier_backup_without_a_copy_of_the_head_is_restored(home: Path, tmp_path: Path) -> None:
    saved = tmp_path / "earlier.tar"
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(home / "trainyard.sqlite3")}
    back_up(Home(home), database, None, saved)
    restored = manage(tmp_path / "new", "restore", str(saved))
    assert restored.returncode == 0, restored.stderr
    assert "has no copy of the audit log's head" in restored.stdout


@pytest.mark.django_db
@pytest.mark.parametrize("as_json", [False, True])
def test_a_line_of_the_log_can_be_compared(caplog: pytest.LogCaptureFixture, as_json: bool) -> None:
    with transaction.atomic():
        event = audit.record("job.pause", "job:1", by=None)
    with caplog.at_level(logging.INFO, logger="jobs.actions.audit"):
        audit.log_anchor()
    settings = logging_settings(as_json=as_json)["formatters"]
    formatter = next(iter(settings.values()))
    made = formatter["()"](**{name: value for name, value in formatter.items() if name != "()"})
    (anchor,) = audit_anchors.read(made.format(caplog.records[-1]), "the log")
    assert (anchor.number, anchor.hash) == (event.number, AuditEvent.objects.get().hash)


@pytest.mark.django_db
def test_the_scheduler_writes_the_line_at_its_start_and_every_hour(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stop = threading.Event()
    monkeypatch.setattr(scheduler, "hold_lease", lambda holder: True)
    monkeypatch.setattr(scheduler, "tick", stop.set)
    monkeypatch.setattr(scheduler.datasets, "ensure_bundled", lambda: None)
    with caplog.at_level(logging.INFO, logger="jobs.actions.audit"):
        scheduler.run(stop)
    assert [record.name for record in caplog.records].count("jobs.actions.audit") == 1
    assert scheduler.ANCHOR_SECONDS == 3600
