"""Reads artifacts by digest, for downloads."""

from django.db.models import Q

from jobs import access
from jobs.errors import NotFound
from jobs.models import Artifact, JobArtifact, ReleaseRecord, User


def released_artifact(user: User, digest: str) -> Artifact:
    """Return an artifact that was released with a model version: its model or code file.

    Raises:
        NotFound: it was never released, or at no endpoint that `user`'s server serves.
    """
    releases = ReleaseRecord.objects.filter(endpoint__in=access.served_endpoints(user))
    code = Q(version__needs_code=True, version__code__files__artifact=digest)
    if not releases.filter(Q(version__artifact=digest) | code).exists():
        raise NotFound(f"There is no released artifact {digest[:12]!r}.")
    return Artifact.objects.get(pk=digest)


def stored_digests() -> list[str]:
    """Return the digests of all artifacts."""
    return list(Artifact.objects.values_list("pk", flat=True))


def artifact_name(artifact: Artifact, user: User) -> str:
    """Return an artifact's name in a job that `user` may see. Empty without one."""
    visible = access.visible_jobs(user)
    use = JobArtifact.objects.filter(artifact=artifact, job__in=visible).order_by("pk").first()
    return use.name if use else ""
