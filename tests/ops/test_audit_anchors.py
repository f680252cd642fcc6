"""The audit chain's head, copied to backups and to the log."""

import json
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest
from django.core.management import call_command
from django.db import transaction
from django.utils.crypto import salted_hmac

from jobs import scheduler
from jobs.actions.audit import audit
from jobs.actions.data import datasets
from jobs.audit_chain import HEAD_SALT
from jobs.logs.lines import logging_settings
from jobs.models import AuditEvent
from jobs.queries.audit import audit_anchors
from tests.ops.conftest import ROOT
from webapp.ops.backup import back_up
from webapp.ops.home import Home

COMMANDS = """
import json, sys
from io import StringIO
from django.core.management import CommandError, call_command

def run(*words):
    out, err = StringIO(), StringIO()
    try:
        call_command(*words, stdout=out, stderr=err)
        code = 0
    except CommandError as error:
        code = error.returncode
        err.write(str(error))
    except SystemExit as end:
        code = end.code
    return [code, out.getvalue(), err.getvalue()]

for line in sys.stdin:
    print(json.dumps(run(*json.loads(line))), flush=True)
"""


class Done(NamedTuple):
    """How a command ended, and its output."""

    code: int
    stdout: str
    stderr: str


class Operator:
    """Runs management commands on a home, all in one process: each of its own would start for a second."""

    def __init__(self, home: Path) -> None:
        variables = {name: value for name, value in os.environ.items() if not name.startswith("TRAINYARD_")}
        self._process = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "shell", "--no-imports", "-c", COMMANDS],
            cwd=ROOT,
            env=variables | {"TRAINYARD_HOME": str(home), "DJANGO_SETTINGS_MODULE": "webapp.settings.main"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *command: str) -> Done:
        """Run one command to its end."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return Done(*json.loads(self._process.stdout.readline()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # the end of its input is its end


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Path:
    """An installation with a few rows in the audit log, and a backup of it."""
    folder = tmp_path_factory.mktemp("home")
    shutil.copy(migrated, folder / "trainyard.sqlite3")
    with Operator(folder) as operator:
        for name in ("ada", "grace"):
            assert operator.run("adduser", name).code == 0
        command = operator.run("backup", str(folder.with_suffix(".tar")))
    assert command.code == 0, command.stderr
    return folder


@pytest.fixture
def backup(home: Path) -> Path:
    return home.with_suffix(".tar")


@pytest.fixture
def copied(home: Path, tmp_path: Path) -> Path:
    """A copy of the installation, for tests that delete rows."""
    return shutil.copytree(home, tmp_path / "other")


@pytest.fixture
def restored(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Done]:
    """Restores a backup into a new home, in this process; the log is verified in a process of its own."""
    home = tmp_path / "new"
    settings.TRAINYARD_HOME = home
    settings.TRAINYARD_ARTIFACTS = str(home / "artifacts")
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(home / "trainyard.sqlite3")}
    monkeypatch.setitem(settings.DATABASES, "default", database)
    for name in [name for name in os.environ if name.startswith("TRAINYARD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TRAINYARD_HOME", str(home))
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "webapp.settings.main")

    def restore(backup: Path) -> Done:
        out, err = StringIO(), StringIO()
        code = 0
        try:
            call_command("restore", str(backup), stdout=out, stderr=err)
        except SystemExit as end:
            code = int(end.code or 0)
        return Done(code, out.getvalue(), err.getvalue())

    return restore


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


def test_a_restored_audit_log_is_compared_with_the_manifest(
    backup: Path, restored: Callable[[Path], Done]
) -> None:
    done = restored(backup)
    assert "The audit chain is valid" in done.stdout


def test_a_backup_shows_rows_that_are_missing_later(backup: Path, copied: Path) -> None:
    with Operator(copied) as operator:
        assert operator.run("audit", "verify", "--anchor", str(backup)).code == 0
        drop_last_rows(copied)
        assert operator.run("audit", "verify").code == 0
        verified = operator.run("audit", "verify", "--anchor", str(backup))
    assert verified.code == 1
    assert "The last rows are missing" in verified.stderr


def test_a_backup_with_fewer_rows_than_its_manifest_says_so_when_it_is_restored(
    copied: Path, tmp_path: Path, restored: Callable[[Path], Done]
) -> None:
    delete_last_rows(copied)
    saved = tmp_path / "less.tar"
    with Operator(copied) as operator:
        assert operator.run("backup", str(saved)).code == 0
    done = restored(saved)
    assert done.code == 1
    assert "The restored audit log is not valid. The last rows are missing" in done.stderr
    assert "accept the log as it is by `" in done.stderr
    assert "files restored into" in done.stdout


def test_an_earlier_backup_without_a_copy_of_the_head_is_restored(
    home: Path, tmp_path: Path, restored: Callable[[Path], Done]
) -> None:
    saved = tmp_path / "earlier.tar"
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(home / "trainyard.sqlite3")}
    back_up(Home(home), database, None, saved)
    done = restored(saved)
    assert "has no copy of the audit log's head" in done.stdout
    assert "The audit chain is valid: 4 rows." in done.stdout


@pytest.mark.django_db
@pytest.mark.parametrize("as_json", [False, True])
def test_a_line_of_the_log_can_be_compared(caplog: pytest.LogCaptureFixture, as_json: bool) -> None:
    with transaction.atomic():
        event = audit.record("job.pause", "job:1", by=None)
    with caplog.at_level(logging.INFO, logger="jobs.actions.audit.audit"):
        audit.log_anchor()
    settings = logging_settings(as_json=as_json)["formatters"]
    formatter = next(iter(settings.values()))
    line_formatter = formatter["()"](**{name: value for name, value in formatter.items() if name != "()"})
    (anchor,) = audit_anchors.read_anchors(line_formatter.format(caplog.records[-1]), "the log")
    assert (anchor.number, anchor.hash) == (event.number, AuditEvent.objects.get().hash)


@pytest.mark.django_db
def test_the_scheduler_writes_the_line_at_its_start_and_every_hour(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stop = threading.Event()
    monkeypatch.setattr(scheduler, "hold_lease", lambda holder: True)
    monkeypatch.setattr(scheduler, "tick", stop.set)
    monkeypatch.setattr(datasets, "ensure_bundled", lambda: None)
    with caplog.at_level(logging.INFO, logger="jobs.actions.audit.audit"):
        scheduler.run(stop)
    assert [record.name for record in caplog.records].count("jobs.actions.audit.audit") == 1
    assert scheduler.ANCHOR_SECONDS == 3600
