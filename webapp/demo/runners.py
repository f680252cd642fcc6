"""Kills a job's runner, to show in a demo that its trial resumes with the same weights."""

import json
import os
import signal
import time
from contextlib import suppress
from typing import NamedTuple

import psutil
from django.conf import settings
from django.db import transaction

from jobs import access
from jobs.actions.audit import audit
from jobs.errors import Conflict, NotFound
from jobs.models import Job, User
from jobs.queries.runs import resumable
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
    """Kill the process that trains a trial in `job`, or `job` itself, as soon as it has a checkpoint.

    Raises:
        NotFound: this is not a demo.
        Forbidden: `by` is not an administrator in the project.
        Conflict: no training in this job has a checkpoint yet.
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
    """Kill a runner whose training has a checkpoint; return None if there is none now."""
    for training in resumable.resumable_trainings(job):
        runner = _runner(training.attempt)
        # It may have ended by itself.
        with suppress(ProcessLookupError):
            if runner is not None:
                os.killpg(runner.pid, signal.SIGKILL)
                return KilledRunner(runner.pid, training.trial, training.epoch)
    return None


def _runner(attempt: int) -> psutil.Process | None:
    """Return the process that runs an attempt on this machine; its worker has written the file."""
    home = Home(settings.TRAINYARD_HOME)
    for file in home.root.glob(f"nodes/*/attempts/{attempt}/process.json"):
        with suppress(OSError, ValueError, KeyError, psutil.Error):
            saved = json.loads(file.read_text())
            process = psutil.Process(int(saved["pid"]))
            # Another process may have got the pid since.
            if abs(process.create_time() - float(saved["born"])) < START_TOLERANCE_SECONDS:
                return process
    return None
