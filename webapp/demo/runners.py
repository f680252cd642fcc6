"""Kills a runner of a job, to show in a demo that its trial resumes with the same weights."""

import json
import os
import signal
import time
from contextlib import suppress
from typing import NamedTuple

import psutil
from django.conf import settings
from django.db import transaction
from django.db.models import Q

from jobs import access
from jobs.actions import audit
from jobs.errors import Conflict, NotFound
from jobs.models import Attempt, Checkpoint, Job, User
from jobs.states import TrialState
from webapp.ops.home import Home

WAIT_SECONDS = 10.0
"""How long to wait for a running training that has a checkpoint to resume from."""
POLL_SECONDS = 0.05
START_TOLERANCE_SECONDS = 0.05
"""Start times that differ by less belong to the same process."""


class KilledRunner(NamedTuple):
    """The process that was killed, and the checkpoint that its training resumes from."""

    pid: int
    trial: int | None
    epoch: int


def kill_runner(job: Job, *, by: User) -> KilledRunner:
    """Kill the process that trains a trial of `job`, or `job` itself, as soon as it has a checkpoint.

    Raises:
        NotFound: this is not a demo.
        Forbidden: `by` is not an administrator of the project.
        Conflict: no training of this job has a checkpoint yet.
    """
    if not settings.TRAINYARD_DEMO:
        raise NotFound("Runners can be killed only in a demo.")
    access.require(by, job.project, access.Action.MANAGE)
    deadline = time.monotonic() + WAIT_SECONDS
    while (killed := _kill_one(job)) is None:
        if time.monotonic() > deadline:
            raise Conflict(
                f"No training of job {job.pk} has a checkpoint now. Try again while a trial trains."
            )
        time.sleep(POLL_SECONDS)
    with transaction.atomic():
        audit.record("demo.kill_runner", f"job:{job.pk}", by=by, project=job.project, **killed._asdict())
    return killed


def _kill_one(job: Job) -> KilledRunner | None:
    """Kill the runner of an attempt whose training has a checkpoint; return None if there is none now."""
    for attempt in Attempt.objects.open().filter(Q(job=job) | Q(job__parent=job)).order_by("-number"):
        found = _checkpoint(attempt)
        if found is None or (runner := _runner(attempt)) is None:
            continue
        # It may have ended by itself.
        with suppress(ProcessLookupError):
            os.killpg(runner.pid, signal.SIGKILL)
            return KilledRunner(runner.pid, found.trial and found.trial.number, found.epoch)
    return None


def _checkpoint(attempt: Attempt) -> Checkpoint | None:
    """Return the newest checkpoint of a training that runs in this attempt."""
    written = Checkpoint.objects.kept().filter(job=attempt.job_id, attempt=attempt.number)
    for row in written.select_related("trial").order_by("-pk")[:1]:
        running = row.trial is None or row.trial.executions.running().filter(number=row.execution).exists()
        if row.trial is None or (running and row.trial.state == TrialState.RUNNING):
            return row
    return None


def _runner(attempt: Attempt) -> psutil.Process | None:
    """Return the process that runs an attempt on this machine; its worker has written the file."""
    home = Home(settings.TRAINYARD_HOME)
    for file in home.root.glob(f"nodes/*/attempts/{attempt.pk}/process.json"):
        with suppress(OSError, ValueError, KeyError, psutil.Error):
            saved = json.loads(file.read_text())
            process = psutil.Process(int(saved["pid"]))
            # Another process may have got the pid since.
            if abs(process.create_time() - float(saved["born"])) < START_TOLERANCE_SECONDS:
                return process
    return None
