"""A scheduler that is killed at any step of a preemption preempts no second run, and loses no work."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone

from jobs.models import PoolSettings, Worker
from tests.jobs.processes.database_copy import run_on_copy
from tests.jobs.runs.test_preemption import running_job
from tests.jobs.yard import PretendWorker, make_yard


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
    report = run_on_copy("tests.jobs.processes.preemption_kills", folder=tmp_path)
    assert report.pop("kills") > 5
    assert report == {"asked": [True], "placed": 1, "preempted": "retrying", "restarts": 0, "slots": 2}
