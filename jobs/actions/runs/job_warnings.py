"""Adds warnings to a job, for its page and its results."""

from jobs.messages.warning_codes import DECISIVE
from jobs.models import Job

MAX_WARNINGS = 20
"""Per job; further warnings are only in the job's events, except the first of each decisive code."""
MAX_LENGTH = 2000
"""Longer texts are cut in the job's row, which every job list reads; its events keep the whole text."""


def add_warning(job_id: int, *, code: str, message: str) -> None:
    """Add a warning to a job, once: several attempts and trials may send the same one.

    The caller holds a transaction.
    """
    # Locked, since several attempts of a search may add warnings at the same time.
    job = Job.objects.locked().only("warnings").get(pk=job_id)
    warning = {"code": code[:MAX_LENGTH], "message": message[:MAX_LENGTH]}
    if warning not in job.warnings and _has_place(job, code):
        Job.objects.filter(pk=job.pk).update(warnings=[*job.warnings, warning])


def _has_place(job: Job, code: str) -> bool:
    if len(job.warnings) < MAX_WARNINGS:
        return True
    # Only the first of a code: code of users may send any.
    return code in DECISIVE and all(warning["code"] != code for warning in job.warnings)
