"""Each route's largest body, for callers who are logged in and for others."""

import re
from dataclasses import dataclass

from django.conf import settings

from jobs.messages.code import MAX_FORM_BYTES
from jobs.spec.data.images import MAX_IMAGE_BYTES

# Bytes. A login form has less than 1 KiB.
ANONYMOUS_BYTES = 64 * 2**10
# Clients may send a body with GET, but no route reads one.
READ_BYTES = 4 * 2**10
READING = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
UPLOADS = re.compile(
    r"""
    /api/v1/datasets | /api/v1/datasets/[^/]+/versions | /api/v1/models/[^/]+/versions |
    /datasets/new | /models/[^/]+/upload
    """,
    re.VERBOSE,
)
"""The paths that receive files, compared as a whole."""
CODE = re.compile(r"/api/v1/code|/code/new")
"""The paths that receive source files, which are small: they get no reservation."""
PICTURES = re.compile(r"/models/[^/]+/versions/[^/]+/predict")
"""The path of the prediction form, which may have an image."""
RESUMABLE = re.compile(r"/api/v1/uploads(/[^/]+)?")
PARTS = re.compile(r"/api/v1/uploads/[^/]+")
"""The paths of uploads by the tus protocol, and those that receive their parts."""


@dataclass(frozen=True)
class BodyLimits:
    """One route's largest body, in bytes.

    Attributes:
        anyone: without checking who sends it.
        member: sent by a person who is logged in, or with a valid token.
        writer: sent by a person who may write in a project, with a token that may write.
    """

    anyone: int
    member: int
    writer: int


def limits_of(method: str, path: str) -> BodyLimits:
    """Return a route's limits. Unknown paths have an ordinary form's limits."""
    if method in READING:
        return BodyLimits(READ_BYTES, READ_BYTES, READ_BYTES)
    form = settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0
    if PICTURES.fullmatch(path):
        return BodyLimits(ANONYMOUS_BYTES, form + MAX_IMAGE_BYTES, form + MAX_IMAGE_BYTES)
    file = form
    if UPLOADS.fullmatch(path):
        file = settings.TRAINYARD_MAX_UPLOAD_BYTES
    elif CODE.fullmatch(path):
        file = max(form, MAX_FORM_BYTES)
    elif method == "PATCH" and PARTS.fullmatch(path):
        file = settings.TRAINYARD_MAX_RESUMABLE_BYTES
    return BodyLimits(min(ANONYMOUS_BYTES, file), min(form, file), file)
