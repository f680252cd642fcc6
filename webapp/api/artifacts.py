"""Sends artifacts by digest, as attachments, so that browsers do not display user content as a page."""

import re

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Router

from jobs import access
from jobs.models import Artifact, User
from jobs.queries import artifacts as queries
from jobs.store import store
from webapp.api.auth import Caller, actor, caller, needs
from webapp.api.downloads import attachment, described

router = Router()
OCTETS = described("application/octet-stream")
UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@router.get("/artifacts/{digest}", auth=needs("read", "serve"), response={200: None}, openapi_extra=OCTETS)
def get_artifact(request: HttpRequest, digest: str) -> StreamingHttpResponse:
    """Return the bytes of an artifact as an attachment."""
    artifact = _artifact(caller(request), digest)
    return attachment(request, store().path(artifact.digest), _file_name(artifact, actor(request)))


def _artifact(who: Caller, digest: str) -> Artifact:
    """Return an artifact that the caller may see. Prediction servers may see released ones."""
    if who.user.is_service and (artifact := queries.released(digest)) is not None:
        return artifact
    return access.get_artifact(who.user, digest)


def _file_name(artifact: Artifact, user: User) -> str:
    """Return the name in a job that the caller may see. The same bytes may have other names elsewhere."""
    name = UNSAFE.sub("-", queries.name_of(artifact, user))
    return name.strip(".-")[:120] or f"{artifact.digest[:12]}.keras"
