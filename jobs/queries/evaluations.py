"""Reads the evaluation reports of a job and its children from their artifacts."""

import json
from typing import Any, NamedTuple

from django.core.cache import cache

from jobs.models import Job, JobArtifact
from jobs.store import store

Report = dict[str, Any]


class Evaluation(NamedTuple):
    """An evaluation of a candidate on the test part."""

    job: Job
    artifact: JobArtifact
    label: str


def of_job(job: Job) -> list[Evaluation]:
    """List the newest evaluation of a job and of each of its children, in the order of the steps."""
    family = {member.pk: member for member in (job, *job.children.all())}
    found: dict[int, Evaluation] = {}
    rows = JobArtifact.objects.filter(job__in=family, role="evaluation").order_by("attempt", "pk")
    for row in rows:
        member = family[row.job_id]
        found[row.job_id] = Evaluation(member, row, member.label)
    return [found[pk] for pk in sorted(found)]


def load(evaluation: Evaluation) -> Report:
    """Return the report of an evaluation."""
    return load_digest(evaluation.artifact.artifact_id)


def load_digest(digest: str) -> Report:
    """Return the JSON report stored under a digest. It is immutable, so it is cached."""
    key = f"evaluation:{digest}"
    report: Report | None = cache.get(key)
    if report is None:
        report = json.loads(store().path(digest).read_bytes())
        cache.set(key, report, timeout=3600)
    return report or {}


def summary(job: Job) -> Report | None:
    """Return the label, test and validation metrics of a candidate; None without test metrics."""
    results = job.results
    if not results.metrics.get("test"):
        return None
    return {
        "job": job,
        "label": job.label,
        "test": {name: _value(m) for name, m in results.metrics["test"].items()},
        "validation": {name: _value(m) for name, m in results.metrics.get("validation", {}).items()},
        "rows": results.test_rows,
    }


def _value(metric: Any) -> Any:
    return metric.get("value") if isinstance(metric, dict) else metric
