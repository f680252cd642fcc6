"""Sends artifacts by digest, as attachments, so that browsers do not display user content as a page."""

import re

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Router

from jobs import access
from jobs.queries.storage import artifacts as queries
from jobs.spec.exports import STORED
from jobs.store import store
from webapp.api.auth import actor, caller, needs
from webapp.downloads import attachment, describe_download

router = Router()
OCTETS = describe_download("application/octet-stream")

UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
"""Characters that a file name in a header must not contain; users choose the names."""


@router.get("/artifacts/{digest}", auth=needs("read", "serve"), response={200: None}, openapi_extra=OCTETS)
def get_artifact(request: HttpRequest, digest: str) -> StreamingHttpResponse:
    """Return an artifact's bytes as an attachment. The scope `serve` alone reads released ones."""
    user = actor(request)
    is_reader = "read" in caller(request).scopes
    artifact = access.get_artifact(user, digest) if is_reader else queries.released_artifact(user, digest)
    # The same bytes may have other names in jobs that the caller may not see.
    name = UNSAFE.sub("-", queries.artifact_name(artifact, user)).strip(".-")[:120]
    return attachment(request, store().path(artifact.digest), name or STORED.file_name(artifact.digest[:12]))
