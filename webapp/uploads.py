"""Provides an uploaded file as a path, for pages and the API. Django has streamed it to disk already."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import TemporaryUploadedFile, UploadedFile
from django.http import HttpRequest

from jobs.actions.datasets import Upload
from jobs.contracts.problems import Problem
from jobs.errors import BadInput
from jobs.models import Project
from webapp import reservations
from webapp.http_errors import TooLarge


def check_size(request: HttpRequest) -> None:
    """Reject a body above the limit before it is parsed.

    Raises:
        TooLarge: above `TRAINYARD_MAX_UPLOAD_BYTES`.
    """
    limit: int = settings.TRAINYARD_MAX_UPLOAD_BYTES
    sent = request.headers.get("Content-Length", "")
    if sent.isdigit() and int(sent) > limit:
        raise TooLarge(f"The limit of an upload is {limit:,} bytes; this one has {int(sent):,}.")


@contextmanager
def received(
    request: HttpRequest, project: Project | None, field: str = "file", sha256: str = ""
) -> Iterator[Upload]:
    """Yield the uploaded file as a path that is valid until the block ends.

    The file counts against the quotas of `project` until the request ends.

    Raises:
        TooLarge: above `TRAINYARD_MAX_UPLOAD_BYTES`.
        BadInput: the form lacks the file.
        QuotaReached: the project has no room for the file, or too many uploads in progress.
    """
    check_size(request)
    file = _file(request, field, "Choose a file.")
    with _on_disk(file) as path:
        if project is not None:
            reservations.reserve(request, project, path.stat().st_size)
        yield Upload(path, Path(file.name or "upload").name, sha256 or None)


@contextmanager
def file_on_disk(request: HttpRequest, project: Project, field: str) -> Iterator[Path]:
    """Yield an uploaded file as a path that is valid until the block ends.

    The file counts against the quotas of `project` until the request ends.

    Raises:
        TooLarge: above `TRAINYARD_MAX_UPLOAD_BYTES`.
        BadInput: the form lacks the file.
        QuotaReached: the project has no room for the file, or too many uploads in progress.
    """
    check_size(request)
    with _on_disk(_file(request, field, "File required")) as path:
        reservations.reserve(request, project, path.stat().st_size)
        yield path


def _file(request: HttpRequest, field: str, message: str) -> "UploadedFile[Any]":
    file = request.FILES.get(field)
    if not isinstance(file, UploadedFile):
        raise BadInput(f"The form lacks the file {field!r}.", [Problem(f"/{field}", message)])
    return file


@contextmanager
def _on_disk(file: "UploadedFile[Any]") -> Iterator[Path]:
    if isinstance(file, TemporaryUploadedFile):
        yield Path(file.temporary_file_path())
        return
    # Django keeps small uploads in memory.
    with tempfile.NamedTemporaryFile(prefix="upload-") as copy:
        for chunk in file.chunks():
            copy.write(chunk)
        copy.flush()
        yield Path(copy.name)
