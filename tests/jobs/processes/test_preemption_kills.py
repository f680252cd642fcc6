"""A scheduler that is killed at any step of a preemption preempts no second run, and loses no work."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone

from jobs.models import PoolSettings, Worker
from tests.jobs.runs.test_preemption import running_job
from tests.jobs.yard import PretendWorker, make_yard

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.timeout(300)
@pytest.mark.django_db(transaction=True)  # another connection copies the database
@pytest.mark.skipif(connection.vendor != "sqlite", reason="copies the test's SQLite database")
def test_a_killed_scheduler_leaves_one_request_and_the_urgent_job_is_placed_once(tmp_path: Path) -> None:
    installation = make_yard()
    PoolSettings.objects.create(pool="default", preemption=True)
    worker = PretendWorker(slots=2)
    for _ in range(2):
        running_job(installation, worker)
    installation.submit(resources={"priority": 90})
    # The processes may start slowly.
    Worker.objects.update(lease_until=timezone.now() + timedelta(hours=1))
    database = sqlite3.connect(connection.settings_dict["NAME"], timeout=20)
    with closing(database), closing(sqlite3.connect(tmp_path / "copy.sqlite3")) as copy:
        database.backup(copy)
    environment = os.environ | {
        "TRAINYARD_HOME": str(tmp_path),
        "TRAINYARD_DATABASE_URL": f"sqlite:///{tmp_path / 'copy.sqlite3'}",
        "DJANGO_SETTINGS_MODULE": "webapp.settings.main",
    }
    command = [sys.executable, "-m", "tests.jobs.processes.preemption_kills"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report.pop("kills") > 5
    assert report == {"asked": [True], "placed": 1, "preempted": "retrying", "restarts": 0, "slots": 2}
