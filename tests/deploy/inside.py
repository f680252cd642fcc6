"""Reads rows for the tests. Runs on the first web server's machine."""

from typing import Any

from django.db import connection
from django.db.models import Max

from jobs.actions.people import tokens
from jobs.models import Attempt, Checkpoint, Job, Lease, User


def training(job_id: int) -> dict[str, Any]:
    """Return a training's attempts with their epochs, and its newest checkpoint in the store."""
    connection.close()  # an outage may have ended it
    job = Job.objects.get(pk=job_id)
    attempts = [
        {
            "worker": attempt.worker.name if attempt.worker else "",
            "state": attempt.state,
            "epochs": _epochs(job, attempt.number),
            "resumed": [each["epoch"] for each in attempt.record.get("resumed", [])],
        }
        for attempt in Attempt.objects.filter(job=job).order_by("number")
    ]
    copied = Checkpoint.objects.filter(job=job, stored__isnull=False).aggregate(epoch=Max("epoch"))["epoch"]
    warnings = [warning["code"] for warning in job.warnings]
    return {"state": job.state, "attempts": attempts, "copied": copied or 0, "warnings": warnings}


def _epochs(job: Job, attempt: int) -> int:
    """Return how many epochs an attempt has reported."""
    return max(job.series.filter(attempt=attempt, name="loss").values_list("count", flat=True), default=0)


def scheduler() -> str:
    """Return the machine of the scheduler that has the lease; empty if none has it."""
    connection.close()
    lease = Lease.objects.filter(name="scheduler").first()
    return lease.holder.split(":")[0] if lease and lease.holder else ""


def predict_token() -> str:
    """Return a token of `ada` for predictions alone."""
    ada = User.objects.get(username="ada")
    _, token = tokens.create(ada, by=ada, scopes=["predict"], name="predictions")
    return token
