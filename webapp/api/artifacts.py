"""The bytes behind a digest, always as a download: nothing that somebody made is shown as a page of ours."""

import re

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Router

from jobs import access
from jobs.models import Artifact, User
from jobs.queries import artifacts as queries
from jobs.store import store
from webapp.api.auth import Caller, actor, caller, needs
from webapp.api.downloads import attachment

router = Router()
UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@router.get("/artifacts/{digest}", auth=needs("read", "serve"), response={200: bytes})
def get_artifact(request: HttpRequest, digest: str) -> StreamingHttpResponse:
    """Return an artifact's bytes."""
    artifact = _artifact(caller(request), digest)
    return attachment(request, store().path(artifact.digest), _file_name(artifact, actor(request)))


def _artifact(who: Caller, digest: str) -> Artifact:
    """Find it by what the caller may see; the prediction servers may see what was released."""
    if who.user.is_service and (artifact := queries.released(digest)) is not None:
        return artifact
    return access.get_artifact(who.user, digest)


def _file_name(artifact: Artifact, user: User) -> str:
    """Return the name that a job in the caller's sight gave it; the same bytes may have others elsewhere."""
    name = UNSAFE.sub("-", queries.name_of(artifact, user))
    return name.strip(".-")[:120] or f"{artifact.digest[:12]}.keras"
