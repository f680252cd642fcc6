"""Reports the files that a script wrote as artifacts, within bounds."""

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from jobs.messages.events import Role
from jobs.spec.sections.script_model import MODEL_FILE
from workers.engine.report import Report

MAX_NAME = 150
"""Characters of a path in the folder. The number of its trial is added."""
SHOWN = 10
"""Refused files that a warning names."""
_DEPTH = 20


class Bounds(NamedTuple):
    """How much of the folder is kept.

    Attributes:
        files: the file count.
        bytes: bytes in all files.
    """

    files: int
    bytes: int


OF_RUN = Bounds(files=500, bytes=10 * 2**30)
OF_TRIAL = Bounds(files=50, bytes=512 * 2**20)
"""A search has many trials, and the files of each stay on the worker's disk until its attempt ends."""


class _Found(NamedTuple):
    """A file that a script wrote: its artifact's name, its place, and its size or why it is not kept."""

    name: str
    path: Path
    size_or_reason: int | str


def report_outputs(
    report: Report,
    folder: Path,
    bounds: Bounds,
    *,
    prefix: str = "",
    work: Path | None = None,
    written: Sequence[str] = (),
) -> None:
    """Report the files in a folder as artifacts. A warning names those that are not kept, with the reasons.

    Args:
        report: its folder contains `folder`.
        folder: the output folder.
        bounds: limit which files are kept: those with the first names.
        prefix: starts the artifact names, such as `trial-3/`.
        work: the working folder; None if nothing of it is kept.
        written: the files that are kept of it.
    """
    refused: list[str] = []
    count, total = 0, 0
    found = list(_entries(folder))
    if work is not None:
        found += _entries_of_work(work, written, found)
    for name, path, size_or_reason in found:
        reason = size_or_reason if isinstance(size_or_reason, str) else None
        size = 0 if isinstance(size_or_reason, str) else size_or_reason
        if reason is None and count == bounds.files:
            reason = f"only {bounds.files} files are kept"
        elif reason is None and total + size > bounds.bytes:
            reason = f"all files together would have more than {bounds.bytes >> 20:,} MiB"
        if reason is not None:
            refused.append(f"{name!r} ({reason})")
            continue
        count, total = count + 1, total + size
        role: Role = "model" if name == MODEL_FILE else "output"
        report.artifact(role, str(path.relative_to(report.folder)), name=prefix + name)
    if refused:
        more = f", and {len(refused) - SHOWN} more" if len(refused) > SHOWN else ""
        names = ", ".join(refused[:SHOWN])
        report.warning("outputs_left_out", f"Files that the script wrote were not kept: {names}{more}.")


def _entries(folder: Path) -> Iterator[_Found]:
    """Yield each file of the output folder; the model comes first."""
    entries = sorted(walk_files(folder), key=lambda entry: (entry[0] != MODEL_FILE, entry[0]))
    for name, _ in entries:
        yield _find(folder, name)


def _entries_of_work(work: Path, written: Sequence[str], outputs: Sequence[_Found]) -> Iterator[_Found]:
    """Yield the files of the working folder that the output folder lacks."""
    by_name = {found.name: found for found in outputs}
    for name in written:
        found = _find(work, name)
        same = by_name.get(found.name)
        if same is None:
            yield found
        # A file of the same size is the one that the script copied to its outputs.
        elif same.size_or_reason != found.size_or_reason:
            yield found._replace(size_or_reason="the folder of outputs has another file of this name")


def _find(folder: Path, name: str) -> _Found:
    path = folder / name
    if len(name) > MAX_NAME or not name.isprintable():
        return _Found(name[:MAX_NAME], path, "its name is too long or not printable")
    try:
        facts = path.lstat()
    except OSError as error:
        return _Found(name, path, str(error.strerror))
    is_file = stat.S_ISREG(facts.st_mode)
    return _Found(name, path, facts.st_size if is_file else "it is a link or no ordinary file")


def walk_files(folder: Path, above: str = "", depth: int = 0) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
    """Yield the entries of a folder and of those in it, with their paths; links are not followed."""
    try:
        entries = list(os.scandir(folder))
    except OSError:  # the script has removed it, or closed it
        return
    for entry in entries:
        name = f"{above}{entry.name}"
        if entry.is_dir(follow_symlinks=False) and depth < _DEPTH:
            yield from walk_files(Path(entry.path), f"{name}/", depth + 1)
        else:
            yield name, entry
