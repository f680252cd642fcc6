"""Collects a version's files: single ones, those in a folder, and those inside an archive."""

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from jobs.messages.code import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_PATH,
    SentFile,
)
from jobs.messages.code_text import lines_of
from workers.code_reader.notebook_files import NOTEBOOK, code_of_notebook, is_notebook
from workers.system.archives import (
    Archive,
    BadArchive,
    DamagedArchive,
    Limits,
    is_archive,
    safe_path,
)

LIMITS = Limits(
    entries=20_000,
    depth=MAX_DEPTH,
    file_bytes=MAX_FILE_BYTES,
    small_bytes=MAX_BYTES,
    ratio=0,
    stream_bytes=512 * 2**20,
    may_nest=True,
)
ARCHIVE_SUFFIXES = (".zip", ".tar", ".tgz", ".tar.gz")
LEFT_OUT_FOLDERS = frozenset({"__pycache__", "__MACOSX", "node_modules", "venv"})
LEFT_OUT_SUFFIXES = frozenset({".pyc", ".pyo"})
LEFT_OUT_FILES = frozenset({"thumbs.db", "desktop.ini"})


@dataclass(frozen=True)
class SourceFile:
    """A file in a version.

    Attributes:
        path: its checked path, with `/` between folders.
        body: its bytes.
        text: its text; None if it is not UTF-8, or has NUL characters.
    """

    path: str
    body: bytes
    text: str | None

    @property
    def is_python(self) -> bool:
        """Return whether it has a Python file's name."""
        return self.path.endswith(".py")

    @property
    def lines(self) -> int | None:
        """Return its line count; None if it is not text."""
        return None if self.text is None else len(lines_of(self.text))


def collect(sent: list[SentFile], *, keeps_paths: bool = False) -> tuple[list[SourceFile], int]:
    """Return a version's files, sorted by their paths, and how many were left out.

    Args:
        sent: single files, or one archive.
        keeps_paths: whether the files are those of a version, whose paths stay.

    Raises:
        BadArchive: a file is refused, they are too many or too large, or there is no Python file.
    """
    if len(sent) == 1 and _is_packed(sent[0]):
        bodies, left_out = _unpacked(sent[0])
    else:
        bodies, left_out = _single(sent)
    bodies = {path: body for name in bodies for path, body in _as_python(name, bodies)}
    if not keeps_paths:
        bodies = _without_common_folder(bodies)
    _check(bodies)
    files = [SourceFile(path, body, text_of(body)) for path, body in sorted(bodies.items())]
    return files, left_out


def _is_packed(file: SentFile) -> bool:
    if file.path.lower().endswith(".py"):
        return False
    with Path(file.place).open("rb") as opened:
        head = opened.read(512)
    return is_archive(head) or file.path.lower().endswith(ARCHIVE_SUFFIXES)


def _unpacked(file: SentFile) -> tuple[dict[str, bytes], int]:
    archive = Archive(Path(file.place), LIMITS, is_left_out)
    bodies: dict[str, bytes] = {}
    try:
        for entry in archive.files():
            bodies[_short(entry.path)] = entry.body
            _check_count(len(bodies))
    except DamagedArchive as error:
        raise BadArchive(f"{file.path!r} is damaged: {error}; pack the files again") from error
    return bodies, archive.left_out


def _single(sent: list[SentFile]) -> tuple[dict[str, bytes], int]:
    bodies: dict[str, bytes] = {}
    left_out = total = 0
    for file in sent:
        path = _short(safe_path(unicodedata.normalize("NFC", file.path), where=""))
        if is_left_out(path):
            left_out += 1
            continue
        if path in bodies:
            raise BadArchive(f"{path!r} is there twice")
        place = Path(file.place)
        if (size := place.stat().st_size) > MAX_FILE_BYTES:
            raise BadArchive(f"{path!r} has {size:,} bytes; at most {MAX_FILE_BYTES:,} are kept")
        if (total := total + size) > MAX_BYTES:
            raise BadArchive(f"the files have more than {MAX_BYTES:,} bytes together")
        bodies[path] = place.read_bytes()
        _check_count(len(bodies))
    return bodies, left_out


def _as_python(path: str, bodies: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield a file; of a notebook its cells of code, as a Python file."""
    if not path.endswith(NOTEBOOK):
        body = bodies[path]
        # Pasted text is stored as a Python file, whatever it is.
        is_pasted = path.endswith(".py") and is_notebook(body)
        yield path, code_of_notebook(path, body) if is_pasted else body
        return
    python = f"{path.removesuffix(NOTEBOOK)}.py"
    if python in bodies:
        raise BadArchive(f"{path!r} would become {python!r}, which is there too; leave one of them out")
    yield python, code_of_notebook(path, bodies[path])


def _short(path: str) -> str:
    if not path:
        raise BadArchive("a file has no name")
    if not path.isprintable():
        # Some of them change the direction of writing, so the name would look like another one.
        raise BadArchive(f"{path[:100]!r} has characters in its name that cannot be printed")
    if len(path) > MAX_PATH:
        raise BadArchive(f"{path[:100]!r}… has {len(path):,} characters in its name; at most {MAX_PATH}")
    if path.count("/") > MAX_DEPTH:
        raise BadArchive(f"{path[:100]!r} is inside of more than {MAX_DEPTH} folders")
    return path


def _check_count(count: int) -> None:
    if count > MAX_FILES:
        raise BadArchive(f"a version has at most {MAX_FILES} files; these are more")


def _check(bodies: dict[str, bytes]) -> None:
    if not any(path.endswith(".py") for path in bodies):
        raise BadArchive("there is no Python file: the name of one ends in .py, or in .ipynb for a notebook")
    for path in bodies:
        parts = path.split("/")
        for depth in range(1, len(parts)):
            if (folder := "/".join(parts[:depth])) in bodies:
                raise BadArchive(f"{folder!r} is a file and a folder at once")


def is_left_out(path: str) -> bool:
    """Return whether a file is no code file: hidden, compiled, or added by an operating system."""
    *folders, name = path.split("/")
    if any(folder.startswith(".") or folder in LEFT_OUT_FOLDERS for folder in folders):
        return True
    hidden = name.startswith(".") or name.lower() in LEFT_OUT_FILES
    return hidden or Path(name).suffix in LEFT_OUT_SUFFIXES


def _without_common_folder(bodies: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files without a folder around them all, unless it is a Python package."""
    folders = {path.split("/", 1)[0] if "/" in path else "" for path in bodies}
    if len(folders) != 1 or not (folder := folders.pop()) or f"{folder}/__init__.py" in bodies:
        return bodies
    return {path.removeprefix(f"{folder}/"): body for path, body in bodies.items()}


def text_of(body: bytes) -> str | None:
    """Return a file's text; None if it is not UTF-8, or has NUL characters."""
    if b"\0" in body:
        return None
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
