"""Takes in one uploaded file, for pages and the API alike. Django has streamed it to disk already."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.core.files.uploadedfile import TemporaryUploadedFile, UploadedFile
from django.http import HttpRequest

from jobs.actions.datasets import Upload
from jobs.contracts.problems import Problem
from jobs.errors import BadInput
from webapp.api.problems import TooLarge


def check_size(request: HttpRequest) -> None:
    """Refuse a body above the limit before a byte of it is parsed.

    Raises:
        TooLarge: says what the limit is.
    """
    limit: int = settings.TRAINYARD_MAX_UPLOAD_BYTES
    sent = request.headers.get("Content-Length", "")
    if sent.isdigit() and int(sent) > limit:
        raise TooLarge(f"An upload may have {limit:,} bytes; this one has {int(sent):,}.")


@contextmanager
def received(request: HttpRequest, field: str = "file", sha256: str = "") -> Iterator[Upload]:
    """Yield the uploaded file as a path that stands until the block ends.

    Raises:
        TooLarge: above `TRAINYARD_MAX_UPLOAD_BYTES`.
        BadInput: there is no such file in the form.
    """
    check_size(request)
    file = request.FILES.get(field)
    if not isinstance(file, UploadedFile):
        raise BadInput(f"The form lacks the file {field!r}.", [Problem(f"/{field}", "Choose a file.")])
    name = Path(file.name or "upload").name
    if isinstance(file, TemporaryUploadedFile):
        yield Upload(Path(file.temporary_file_path()), name, sha256 or None)
        return
    with tempfile.NamedTemporaryFile() as copy:
        for chunk in file.chunks():
            copy.write(chunk)
        copy.flush()
        yield Upload(Path(copy.name), name, sha256 or None)
