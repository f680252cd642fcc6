"""Reads the jobs of requests that are answered once: equal requests have the same job and the same result."""

import hashlib
import json
from typing import Protocol

from jobs.kinds.base import Payload
from jobs.models import Job, Project
from jobs.models.job import JobQuerySet
from jobs.states import FINAL, JobState

NOT_REQUESTED = "none"
"""The state in an answer to a request without a job."""


class JobRequest(Protocol):
    """The input, the title and the project of a job. Equal requests have equal keys in their payloads."""

    @property
    def project(self) -> Project:
        """The project in which the job runs."""

    @property
    def payload(self) -> Payload:
        """The job's input."""

    @property
    def title(self) -> str:
        """The job's title."""

    @property
    def jobs(self) -> JobQuerySet:
        """The project's jobs of equal requests, newest first."""


def key_of(value: object) -> str:
    """Return the key that equal requests have: the digest of all that they depend on, as a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def answering_job(request: JobRequest) -> Job | None:
    """Return the job that answers a request: a completed one, else an open one, else the last."""
    rows = request.jobs
    completed = rows.filter(state=JobState.COMPLETED).first()
    return completed or rows.exclude(state__in=FINAL).first() or rows.first()


def has_answer(request: JobRequest, *, again: bool) -> bool:
    """Return whether a request's job is completed or open, or has failed and must not be repeated."""
    rows = request.jobs
    if rows.filter(state=JobState.COMPLETED).exists() or rows.exclude(state__in=FINAL).exists():
        return True
    return not again and rows.exists()
