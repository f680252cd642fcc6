"""Reads whether a registered version can be quantized or cast, and the jobs that do so."""

from django.db.models import QuerySet

from jobs.kinds.rows import that_make_smaller
from jobs.models import Job, ModelVersion
from jobs.queries.registry import versions
from jobs.states import OPEN


def smaller_version_jobs(version: ModelVersion) -> QuerySet[Job]:
    """Return the unfinished jobs that quantize or cast a version, newest first."""
    rows = Job.objects.filter(project=version.model.project_id, state__in=OPEN)
    return rows.filter(that_make_smaller(version.artifact_id, version.model.name)).order_by("-pk")


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
