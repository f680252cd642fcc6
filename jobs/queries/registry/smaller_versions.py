"""Reads whether a registered version can be quantized or cast, and the jobs that do so."""

from statistics import median

from django.db.models import QuerySet

from jobs.kinds.rows import that_made_smaller, that_make_smaller
from jobs.models import Job, ModelVersion
from jobs.queries.registry import versions
from jobs.states import OPEN, JobState


def smaller_version_jobs(version: ModelVersion) -> QuerySet[Job]:
    """Return the unfinished jobs that quantize or cast a version, newest first."""
    rows = Job.objects.filter(project=version.model.project_id, state__in=OPEN)
    return rows.filter(that_make_smaller(version.artifact_id, version.model.name)).order_by("-pk")


def usual_seconds_of_smaller(version: ModelVersion, mode: str) -> float | None:
    """Return the median time of earlier jobs that did the same for the model; None without any."""
    alike = Job.objects.filter(
        that_made_smaller(version.model.name, mode),
        project=version.model.project_id,
        state=JobState.COMPLETED,
        started__isnull=False,
        finished__isnull=False,
    )
    seconds = [
        (finished - started).total_seconds()
        for started, finished in alike.order_by("-pk").values_list("started", "finished")[:20]
        if started is not None and finished is not None
    ]
    return median(seconds) if seconds else None


def smaller_version_refusal(version: ModelVersion) -> str:
    """Return why a version can be neither quantized nor cast; empty if it can."""
    source = version.source_job
    if source is None or source.revision is None or versions.is_foreign(version):
        return f"{version} was not trained here, so there are no test rows on which both could be compared"
    if source.facts.registered_as == "quantized":
        return f"{version} is quantized or cast already; choose the version that it was made from"
    spec = source.revision.spec
    if (reason := spec.model.info.refused.get("/after/quantize")) is not None:
        return f"{version} cannot be made smaller: {reason}"
    policies = (spec.precision.policy, *(override.policy for override in spec.precision.overrides))
    if "float8" in policies:
        return f"{version} has layers that were trained in float8, which have their own scales"
    return ""
