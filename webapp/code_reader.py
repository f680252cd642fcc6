"""Has code of users read, highlighted and compared by a process with limits.

The web process parses none of it: a file that is nested too deeply, or that makes a library compute for
minutes, ends that process alone.
"""

import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.conf import settings
from django.core.cache import cache
from pydantic import ValidationError

from jobs.actions.code import CheckedFile
from jobs.contracts.base import Frozen
from jobs.contracts.code import (
    CodeFound,
    ComparedFile,
    CompareRequest,
    Comparison,
    Highlighted,
    HighlightRequest,
    ReaderRefusal,
    Reading,
    ReadRequest,
    SentFile,
)
from jobs.contracts.problems import Problem
from jobs.errors import BadInput, TrainyardError
from jobs.models import CodeFile
from jobs.models.digests import text_digest
from jobs.queries.code import Pair
from jobs.store import store
from webapp.child_processes import inherited_environment
from webapp.http_errors import Unavailable

PROGRAM = (sys.executable, "-m", "workers.code_reader")
# The process ends by itself before that.
TIMEOUT_SECONDS = 90.0
AT_ONCE = 2
WAIT_SECONDS = 15.0
CACHED_SECONDS = 3600
MOST_CACHED_BYTES = 128 * 2**10
"""Larger answers are computed again: the cache is in the memory of this process."""

_places = threading.BoundedSemaphore(AT_ONCE)


class ReaderEnded(Exception):
    """The process ended without an answer: it used too much time or memory."""


@contextmanager
def checked(
    received: Sequence[tuple[Path, str]], field: str
) -> Iterator[tuple[list[CheckedFile], CodeFound]]:
    """Yield the files of a version, which exist until the block ends, and the findings about them.

    Args:
        received: single files, or one archive: each with the path that its sender gave it.
        field: the form's field, which a refusal names.

    Raises:
        BadInput: a file is refused, or reading them took too much time or memory.
        Unavailable: too many files are being read.
    """
    with tempfile.TemporaryDirectory(prefix="code-") as folder:
        sent = [SentFile(place=str(place), path=path) for place, path in received]
        try:
            answer = _ask(ReadRequest(files=sent, into=folder), Reading)
        except ReaderEnded as error:
            raise _refused("it takes too much time or memory to read these files", field) from error
        if isinstance(answer, ReaderRefusal):
            raise _refused(answer.refusal, field)
        files = [CheckedFile(file.path, Path(folder, str(file.number)), file.lines) for file in answer.files]
        yield files, answer.found


def _refused(reason: str, field: str) -> BadInput:
    return BadInput(f"{reason[:1].upper()}{reason[1:]}.", [Problem(f"/{field}", reason)])


def highlighted(file: CodeFile) -> Highlighted:
    """Return the lines of a file of text, with styles if they can be found in a moment."""
    place = store().path(file.artifact_id)
    # The styles depend on the end of the name.
    key = f"code:{file.artifact_id}:{text_digest(Path(file.path).suffix)}"
    request = HighlightRequest(place=str(place), path=file.path)
    try:
        return _cached(key, Highlighted, lambda: _ask(request, Highlighted))
    except (ReaderEnded, Unavailable):
        text = place.read_bytes().decode("utf-8-sig", "replace")
        return Highlighted(lines=[[("", line)] for line in text.splitlines()], is_complete=False)


def compared(pairs: Sequence[Pair], key: str) -> Comparison:
    """Return the differences of files in two versions.

    Args:
        pairs: the files that differ.
        key: names both versions.

    Raises:
        TrainyardError: it takes too much time or memory.
        Unavailable: too many files are being read.
    """
    files = [ComparedFile(path=pair.path, old=_place(pair.old), new=_place(pair.new)) for pair in pairs]
    try:
        return _cached(f"code:{key}", Comparison, lambda: _ask(CompareRequest(files=files), Comparison))
    except ReaderEnded as error:
        raise TrainyardError(
            "It takes too much time or memory to compare these versions.", code="too_different"
        ) from error


def _place(file: CodeFile | None) -> str | None:
    return None if file is None else str(store().path(file.artifact_id))


def _cached[A: Frozen](key: str, kind: type[A], compute: Callable[[], A | ReaderRefusal]) -> A:
    """Return an answer of the cache: files never change."""
    if (known := cache.get(key)) is not None:
        return kind.model_validate_json(known)
    found = compute()
    if isinstance(found, ReaderRefusal):
        raise ReaderEnded(found.refusal)
    text = found.model_dump_json()
    if len(text) <= MOST_CACHED_BYTES:
        cache.set(key, text, timeout=CACHED_SECONDS)
    return found


def _ask[A: Frozen](request: Frozen, kind: type[A]) -> A | ReaderRefusal:
    """Return the answer of a new process.

    Raises:
        ReaderEnded: it ended without one.
        Unavailable: too many of them are running.
    """
    if not _places.acquire(timeout=WAIT_SECONDS):
        raise Unavailable("The server is reading other code. Try again in a moment.", retry_after=2)
    try:
        # A file, not a pipe: the limit of files applies to the answer too.
        with tempfile.TemporaryFile() as output:
            _run(request.model_dump_json(), output)
            output.seek(0)
            text = output.read()
    finally:
        _places.release()
    try:
        if text.startswith(b'{"refusal"'):
            return ReaderRefusal.model_validate_json(text)
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise ReaderEnded from error


def _run(request: str, output: IO[bytes]) -> None:
    try:
        subprocess.run(  # noqa: S603 - the command is fixed
            PROGRAM,
            input=request.encode(),
            stdout=output,
            stderr=subprocess.DEVNULL,
            timeout=TIMEOUT_SECONDS,
            check=True,
            cwd=settings.BASE_DIR,
            env=inherited_environment(),
        )
    except subprocess.SubprocessError as error:
        raise ReaderEnded from error
