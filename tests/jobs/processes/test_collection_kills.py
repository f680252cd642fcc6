"""A collection that is killed at any step loses nothing, and the next one finishes its work."""

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from jobs import clock
from jobs.actions.storage import artifacts, deletions
from jobs.models import Artifact, Deletion, JobArtifact
from jobs.store import store
from tests.factories import make_job, make_trials
from tests.jobs.processes.database_copy import run_on_copy
from tests.people import People

DAYS = timedelta(days=3)


def keep(folder: Path, content: str) -> Artifact:
    file = folder / "file"
    file.write_text(content)
    return artifacts.adopt(store().put(file))


@pytest.mark.timeout(300)
@pytest.mark.django_db(transaction=True)  # another connection copies the database
@pytest.mark.skipif(connection.vendor != "sqlite", reason="copies the test's SQLite database")
def test_a_killed_run_loses_nothing_and_the_next_ones_finish(
    people: People, tmp_path: Path, settings: Any
) -> None:
    settings.TRAINYARD_ARTIFACTS = str(tmp_path / "artifacts")
    used, purged, lone, orphan = (keep(tmp_path, name) for name in ("used", "purged", "lone", "orphan"))
    jobs = [make_job(by=people.member, project=people.project, state="completed") for _ in range(2)]
    for job, artifact in zip(jobs, (used, purged), strict=True):
        make_trials(job, 2)
        JobArtifact.objects.create(job=job, attempt=1, artifact=artifact, role="x", name="x")
        (store().checkpoint_root / f"job-{job.pk}" / "1").mkdir(parents=True)
    deletions.delete(jobs[1], by=people.member)
    Deletion.objects.update(until=clock.now() - timedelta(seconds=1))
    Artifact.objects.update(stored=clock.now() - DAYS)
    digests = {stored.digest for stored in (used, purged, lone, orphan)}
    Artifact.objects.filter(pk=orphan.pk).delete()
    for entry in store().files():
        past = time.time() - DAYS.total_seconds()
        os.utime(store().path(entry.digest), (past, past))
    report = run_on_copy(
        "tests.jobs.processes.collection_kills",
        used.digest,
        folder=tmp_path,
        TRAINYARD_ARTIFACTS=str(tmp_path / "artifacts"),
    )
    assert report.pop("kills") > 10
    assert report == {
        "lost": [],
        "rows": [used.digest],
        "files": [used.digest],
        "trash": sorted(digests - {used.digest}),
        "deletions": 0,
        "folders": [f"job-{jobs[0].pk}"],
    }
