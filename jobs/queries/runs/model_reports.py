"""Reads the reports about models that the engine wrote: evaluations, ensembles, quantizations, summaries."""

import errno
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.core.cache import cache
from pydantic import ValidationError

from jobs.answers.runs.model_reports import ModelReportOut, ReportRole
from jobs.errors import NotFound
from jobs.kinds import KINDS
from jobs.kinds.rows import belonging_to
from jobs.messages.reports.base import ModelReport
from jobs.messages.reports.evaluation import EVALUATION
from jobs.messages.reports.model_summary import ModelSummary
from jobs.messages.reports.verdicts import verdict
from jobs.models import Job, JobArtifact, ModelVersion
from jobs.store import store

ROLES: tuple[ReportRole, ...] = ("report", "evaluation", "summary")
"""The artifact roles for reports about a model."""

CACHED_SECONDS = 3600
MAX_CACHED = 2**20
"""The largest report that the web process keeps in memory. With 10,000 layers, one has 4 MB."""
MAX_BYTES = 64 * 2**20
"""The largest report that is read, in bytes."""


class StoredReport(NamedTuple):
    """A job's report, which has not been read yet."""

    job: Job
    role: ReportRole
    digest: str

    @property
    def label(self) -> str:
        """Return the name for the job that made it."""
        return self.job.label


def reports_of_job(job: Job, roles: Sequence[str] = ROLES) -> list[StoredReport]:
    """List the newest report per role for a job and its children, in step order."""
    jobs = {member.pk: member for member in (job, *job.children.all())}
    return _newest_reports(JobArtifact.objects.filter(job__in=jobs, role__in=roles), jobs)


def reports_of_version(version: ModelVersion, roles: Sequence[str] = ROLES) -> list[StoredReport]:
    """List a version's newest report per role: from its training, else from its validation.

    Its summary comes from its validation, if there is one: that can be made again for a version from an
    earlier release.
    """
    validations = list(Job.objects.filter(belonging_to("version", [version.pk])))
    jobs = {job.pk: job for job in (*validations, version.source_job) if job is not None}
    reports = _newest_reports(JobArtifact.objects.filter(job__in=jobs, role__in=roles), jobs)
    training_reports = {report.role: report for report in reports if report.job.pk == version.source_job_id}
    summaries = {report.role: report for report in reports if report.role == "summary"}
    return list(({report.role: report for report in reports} | training_reports | summaries).values())


def _newest_reports(rows: Iterable[JobArtifact], jobs: dict[int, Job]) -> list[StoredReport]:
    reports: dict[tuple[int, int], StoredReport] = {}
    # In ascending order, so that a later attempt's report replaces an earlier one's.
    for row in sorted(rows, key=lambda row: (row.attempt, row.pk)):
        if row.name.endswith(".json"):
            role = next(role for role in ROLES if role == row.role)
            reports[row.job_id, ROLES.index(role)] = StoredReport(jobs[row.job_id], role, row.artifact_id)
    # Jobs are created in step order, so ids are in step order too.
    return [reports[key] for key in sorted(reports)]


def read_report(stored: StoredReport) -> ModelReport | None:
    """Return a report; None if its file is missing, too large, or no such report.

    The file was written by a runner, which may have run a user's code.
    """
    try:
        content = read_content(stored.digest)
        if stored.role == "evaluation":
            return EVALUATION.validate_json(content)
        model = ModelSummary if stored.role == "summary" else KINDS[stored.job.kind].report
        return model.model_validate_json(content) if model is not None else None
    except (NotFound, OSError, ValidationError):
        return None


def members_of_report(stored: StoredReport) -> dict[str, Job]:
    """Return the jobs that trained an ensemble's members, by their names in its report."""
    names = stored.job.payload.member_names()
    return {names[job.pk]: job for job in Job.objects.filter(pk__in=names)}


def report_findings(stored: Iterable[StoredReport]) -> list[tuple[StoredReport, str]]:
    """Return each report's finding as one sentence. Unreadable reports are left out."""
    return [(row, verdict(report)) for row in stored if (report := read_report(row)) is not None]


def read_content(digest: str) -> bytes:
    """Return a stored file's content. It is immutable, so it is cached."""
    key = f"report:{digest}"
    cached: bytes | None = cache.get(key)
    if cached is None:
        path = store().path(digest)
        if (size := path.stat().st_size) > MAX_BYTES:
            raise OSError(errno.EFBIG, f"a report of {size:,} bytes")
        cached = path.read_bytes()
        if size <= MAX_CACHED:
            cache.set(key, cached, timeout=CACHED_SECONDS)
    return cached


def model_reports_out(stored: Iterable[StoredReport]) -> list[ModelReportOut]:
    """Return the reports that can be read, as the API represents them."""
    return [
        ModelReportOut(
            job=row.job.pk,
            label=row.label,
            role=row.role,
            digest=row.digest,
            verdict=verdict(report),
            report=report,
        )
        for row in stored
        if (report := read_report(row)) is not None
    ]
