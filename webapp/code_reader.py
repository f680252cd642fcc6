"""Has users' code read, highlighted and compared by a process with limits.

The web process parses none of it: a file that is nested too deeply, or that makes a library compute for
minutes, ends that process alone.
"""

import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from django.conf import settings
from django.core.cache import cache
from pydantic import ValidationError

from jobs.actions.code.code import CheckedFile
from jobs.errors import BadInput, TrainyardError
from jobs.messages.code import (
    MAX_ANSWER_BYTES,
    MAX_SHOWN_LINES,
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
from jobs.messages.code_text import lines_of, with_visible_marks
from jobs.models import CodeFile
from jobs.models.digests import text_digest
from jobs.queries.code.code import Pair
from jobs.spec.base import Frozen
from jobs.spec.problems import Problem
from jobs.store import store
from webapp.child_processes import inherited_environment
from webapp.http_errors import Unavailable
from webapp.ops.shared_results import settle

PROGRAM = (sys.executable, "-m", "workers.code_reader")
# The process ends by itself before that.
TIMEOUT_SECONDS = 90.0
AT_ONCE = 2
"""Processes for uploads, and as many for pages: neither waits for the other."""
UPLOAD_WAIT_SECONDS = 15.0
COMPARISON_WAIT_SECONDS = 5.0
COLOURS_WAIT_SECONDS = 1.0
"""A page without colours is better than one that comes late."""
CACHED_SECONDS = 3600
FAILED_SECONDS = 300
"""A process that ended without an answer would do so again."""
FAILED = "failed"
MOST_CACHED_BYTES = 128 * 2**10
"""Larger answers are computed again: the cache is in the memory of this process."""

_uploads = threading.BoundedSemaphore(AT_ONCE)
_views = threading.BoundedSemaphore(AT_ONCE)
_running: dict[str, Future[Frozen]] = {}
_running_lock = threading.Lock()


class ReaderEnded(Exception):
    """The process ended without an answer: it used too much time or memory."""


@contextmanager
def check_files(
    received: Sequence[tuple[Path, str]], field: str, *, definitions_only: bool = False
) -> Iterator[tuple[list[CheckedFile], CodeFound]]:
    """Yield a version's files, which exist until the block ends, and the findings about them.

    Args:
        received: single files, or one archive: each with the path that its sender gave it.
        field: the form's field, which a refusal names.
        definitions_only: whether statements that run on import are left out.

    Raises:
        BadInput: a file is refused, or reading them took too much time or memory.
        Unavailable: too many files are being read.
    """
    with tempfile.TemporaryDirectory(prefix="code-") as folder:
        sent = [SentFile(place=str(place), path=path) for place, path in received]
        try:
            with _place_in(_uploads, UPLOAD_WAIT_SECONDS):
                request = ReadRequest(files=sent, into=folder, definitions_only=definitions_only)
                answer = _ask(request, Reading)
        except ReaderEnded as error:
            raise _refused("it takes too much time or memory to read these files", field) from error
        if isinstance(answer, ReaderRefusal):
            raise _refused(answer.refusal, field)
        files = [CheckedFile(file.path, Path(folder, str(file.number)), file.lines) for file in answer.files]
        yield files, answer.found


def _refused(reason: str, field: str) -> BadInput:
    return BadInput(f"{reason[:1].upper()}{reason[1:]}.", [Problem(f"/{field}", reason)])


def highlight_file(file: CodeFile) -> Highlighted:
    """Return a text file's lines, with styles if they can be found in a moment."""
    place = store().path(file.artifact_id)
    # The styles depend on the end of the name.
    key = f"code-source:{file.artifact_id}:{text_digest(Path(file.path).suffix)}"
    request = HighlightRequest(place=str(place), path=file.path)
    try:
        return _cached(key, Highlighted, request, COLOURS_WAIT_SECONDS)
    except ReaderEnded:
        note = "The file takes too much time or memory to highlight, so it is shown without colours."
    except Unavailable:
        note = (
            "The server is reading other code, so this is shown without colours. Load the page again later."
        )
    lines = lines_of(place.read_bytes().decode("utf-8-sig", "replace"))
    plain_lines = [[("", with_visible_marks(line))] for line in lines[:MAX_SHOWN_LINES]]
    return Highlighted(lines=plain_lines, is_cut=len(lines) > MAX_SHOWN_LINES, note=note)


def compare_files(pairs: Sequence[Pair], key: str) -> Comparison:
    """Return the differences between files in two versions.

    Args:
        pairs: the files that differ.
        key: names both versions.

    Raises:
        TrainyardError: it takes too much time or memory.
        Unavailable: too many files are being read.
    """
    files = [ComparedFile(path=pair.path, old=_place(pair.old), new=_place(pair.new)) for pair in pairs]
    try:
        request = CompareRequest(files=files)
        return _cached(f"code-difference:{key}", Comparison, request, COMPARISON_WAIT_SECONDS)
    except ReaderEnded as error:
        raise TrainyardError(
            "It takes too much time or memory to compare these versions.", code="too_different"
        ) from error


def _place(file: CodeFile | None) -> str | None:
    return None if file is None else str(store().path(file.artifact_id))


def _cached[A: Frozen](key: str, kind: type[A], request: Frozen, wait_seconds: float) -> A:
    """Return a cached answer, since files never change, or one process's answer for all who ask at once.

    Raises:
        ReaderEnded: a process for this request ended without an answer, now or some minutes ago.
        Unavailable: too many are running.
    """
    if (cached := cache.get(key)) is not None:
        if cached == FAILED:
            raise ReaderEnded
        return kind.model_validate_json(cached)
    with _running_lock:
        running = _running.get(key)
        future = _running.setdefault(key, Future())
    if running is not None:
        try:
            return cast(A, running.result(timeout=wait_seconds))
        except TimeoutError as error:
            raise _busy() from error
    try:
        settle(future, lambda: _computed(key, kind, request, wait_seconds))
    finally:
        with _running_lock:
            del _running[key]
    return cast(A, future.result())


def _computed[A: Frozen](key: str, kind: type[A], request: Frozen, wait_seconds: float) -> A:
    with _place_in(_views, wait_seconds):
        try:
            answer = _ask(request, kind)
            if isinstance(answer, ReaderRefusal):
                raise ReaderEnded(answer.refusal)
        except ReaderEnded:
            cache.set(key, FAILED, timeout=FAILED_SECONDS)
            raise
    text = answer.model_dump_json()
    if len(text) <= MOST_CACHED_BYTES:
        cache.set(key, text, timeout=CACHED_SECONDS)
    return answer


@contextmanager
def _place_in(places: threading.BoundedSemaphore, wait_seconds: float) -> Iterator[None]:
    """Take one process place until the block ends.

    Raises:
        Unavailable: none was free in that time.
    """
    if not places.acquire(timeout=wait_seconds):
        raise _busy()
    try:
        yield
    finally:
        places.release()


def _busy() -> Unavailable:
    return Unavailable("The server is reading other code. Try again in a moment.", retry_after=2)


def _ask[A: Frozen](request: Frozen, kind: type[A]) -> A | ReaderRefusal:
    """Return a new process's answer.

    Raises:
        ReaderEnded: it ended without one, or the answer is too large.
    """
    # A file, not a pipe: the limit of files applies to the answer too.
    with tempfile.TemporaryFile() as output:
        _run(request.model_dump_json(), output)
        output.seek(0)
        text = output.read(MAX_ANSWER_BYTES + 1)
    if len(text) > MAX_ANSWER_BYTES:
        raise ReaderEnded
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
