"""Provides an uploaded file as a path, for pages and the API. Django has streamed it to disk already."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.core.files.uploadedfile import TemporaryUploadedFile, UploadedFile
from django.http import HttpRequest

from jobs import access
from jobs.actions.data.datasets import MOST_FILES, Upload
from jobs.errors import BadInput, NotFound
from jobs.messages.code import MAX_FORM_BYTES, MAX_NAME
from jobs.models import Project, ResumableUpload, User
from jobs.spec.problems import Problem
from webapp import reservations
from webapp.http_errors import TooLarge

PASTED = "model.py"
"""The path of pasted text."""


class Received(NamedTuple):
    """A file that was received: where its bytes are, and the path that its sender gave it."""

    place: Path
    path: str


def check_size(request: HttpRequest) -> None:
    """Reject a body above the limit before it is parsed.

    Raises:
        TooLarge: above `TRAINYARD_MAX_UPLOAD_BYTES`.
    """
    _check_announced(request, settings.TRAINYARD_MAX_UPLOAD_BYTES)


def _check_announced(request: HttpRequest, limit: int) -> None:
    sent = request.headers.get("Content-Length", "")
    if sent.isdigit() and int(sent) > limit:
        raise TooLarge(f"The limit of an upload is {limit:,} bytes; this one has {int(sent):,}.")


@contextmanager
def received(request: HttpRequest, project: Project | None, sha256: str = "") -> Iterator[list[Upload]]:
    """Yield the uploaded files as paths that are valid until the block ends, in the form's order.

    The files count against `project`'s quotas until the request ends.

    Raises:
        TooLarge: above `TRAINYARD_MAX_UPLOAD_BYTES`.
        BadInput: the form lacks the file, or has several and one digest.
        QuotaReached: the project has no room for the files, or too many uploads in progress.
    """
    check_size(request)
    _file(request, "file", "Choose a file.")
    files = request.FILES.getlist("file")
    require_one_for_digest(len(files), sha256)
    with ExitStack() as open_files:
        paths = [open_files.enter_context(_on_disk(file)) for file in files]
        if project is not None:
            reservations.reserve(request, project, sum(path.stat().st_size for path in paths))
        yield [
            Upload(path, Path(file.name or "upload").name, sha256 or None)
            for path, file in zip(paths, files, strict=True)
        ]


def require_one_for_digest(files: int, sha256: str) -> None:
    """Require that a digest belongs to one file.

    Raises:
        BadInput: there are several files and a digest.
    """
    if sha256 and files > 1:
        message = f"sha256 is the digest of one file, and the form has {files}"
        raise BadInput(message, [Problem("/sha256", message)])


@contextmanager
def model_on_disk(request: HttpRequest, project: Project) -> Iterator[tuple[Path, Path | None]]:
    """Yield a model's file, and that with sample rows if there is one, as paths valid until the block ends.

    The files count against `project`'s quotas until the request ends.

    Raises:
        TooLarge: above `TRAINYARD_MAX_UPLOAD_BYTES`.
        BadInput: the form lacks the model's file.
        QuotaReached: the project has no room for the files, or too many uploads in progress.
    """
    check_size(request)
    model, sample = _file(request, "file", "File required"), request.FILES.get("sample")
    with ExitStack() as open_files:
        path = open_files.enter_context(_on_disk(model))
        rows = open_files.enter_context(_on_disk(sample)) if isinstance(sample, UploadedFile) else None
        reservations.reserve(request, project, sum(each.stat().st_size for each in (path, rows) if each))
        yield path, rows


class SentCode(NamedTuple):
    """Code that a form brings.

    Attributes:
        files: single files, or one archive.
        field: the form's field that has them.
        proposed_name: a name for it, from its first file or folder.
    """

    files: list[Received]
    field: str
    proposed_name: str


@contextmanager
def received_code(request: HttpRequest) -> Iterator[SentCode]:
    """Yield a form's files or text as paths that are valid until the block ends.

    Raises:
        TooLarge: above the limit for code.
        BadInput: the form has neither files nor text, or both, or another number of paths.
    """
    _check_announced(request, MAX_FORM_BYTES)
    files = [file for file in request.FILES.getlist("file") if isinstance(file, UploadedFile)]
    text = request.POST.get("text", "")
    if bool(files) == bool(text.strip()):
        message = "give files or text, not both" if files else "choose files, or paste the code"
        raise BadInput(
            "The form has no code." if not files else "The form has two kinds of code.",
            [Problem("/text" if files else "/file", message)],
        )
    if not files:
        (path,) = _paths(request, [PASTED])
        with written_code([(path, text_of_lines(text))], "text") as sent:
            yield sent
        return
    with ExitStack() as open_files:
        paths = _paths(request, [file.name or "upload" for file in files])
        places = [open_files.enter_context(_on_disk(file)) for file in files]
        named = [Received(place, path) for place, path in zip(places, paths, strict=True)]
        yield SentCode(named, "file", _proposed_name(paths))


def text_of_lines(text: str) -> str:
    """Return the text of a form's field as that of a file: browsers end lines with two characters."""
    lines = text.replace("\r\n", "\n")
    return lines if lines.endswith("\n") else f"{lines}\n"


def _paths(request: HttpRequest, names: list[str]) -> list[str]:
    """Return each file's path: Django keeps only the last part of the name that the browser sent."""
    paths = [path for path in request.POST.getlist("path") if path]
    if paths and len(paths) != len(names):
        message = f"there are {len(paths)} paths and {len(names)} files"
        raise BadInput("The paths do not fit the files.", [Problem("/path", message)])
    return paths or names


def _proposed_name(paths: list[str]) -> str:
    first = paths[0].replace("\\", "/").strip("/").partition("/")[0]
    return re.sub(r"\.(py|zip|tar|tgz|tar\.gz)$", "", first, flags=re.IGNORECASE)[:MAX_NAME]


@contextmanager
def written_code(texts: list[tuple[str, str]], field: str) -> Iterator[SentCode]:
    """Yield texts, each after its path, as files that exist until the block ends.

    Args:
        texts: at least one.
        field: the request field that has them.
    """
    with tempfile.TemporaryDirectory(prefix="upload-") as folder:
        files = []
        for number, (path, text) in enumerate(texts):
            place = Path(folder, str(number))
            place.write_bytes(text.encode())
            files.append(Received(place, path))
        yield SentCode(files, field, _proposed_name([path for path, _ in texts]))


def arrived(request: HttpRequest, user: User) -> list[ResumableUpload]:
    """Return the uploads by the tus protocol that a form names, in its order.

    Raises:
        BadInput: the form has a file too, or names an upload twice or one that `user` may not use.
    """
    keys = [key for key in request.POST.getlist("upload") if key]
    if keys and request.FILES:
        raise _bad_upload("give files or uploads, not both")
    if len(keys) > MOST_FILES or len(set(keys)) < len(keys):
        raise _bad_upload(f"give up to {MOST_FILES} different uploads")
    try:
        return [access.get_upload(user, key) for key in keys]
    except NotFound as error:
        raise _bad_upload(error.message) from error


def _bad_upload(message: str) -> BadInput:
    return BadInput(message, [Problem("/upload", message)])


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
