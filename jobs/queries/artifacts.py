"""Reads artifacts by digest, for downloads."""

from jobs import access
from jobs.models import Artifact, JobArtifact, ReleaseRecord, User


def released(digest: str) -> Artifact | None:
    """Return the artifact if it was ever released as the file of a model version, else None."""
    if not ReleaseRecord.objects.filter(version__artifact=digest).exists():
        return None
    return Artifact.objects.filter(pk=digest).first()


def name_of(artifact: Artifact, user: User) -> str:
    """Return the name of an artifact in a job that `user` may see; empty if there is none."""
    visible = access.visible_jobs(user)
    use = JobArtifact.objects.filter(artifact=artifact, job__in=visible).order_by("pk").first()
    return use.name if use else ""
