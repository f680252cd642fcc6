"""Reports the files in a script's output folder as artifacts, within bounds."""

import os
import stat
from collections.abc import Iterator
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


class Kept(NamedTuple):
    """A file that is kept: its path in the folder, and its size."""

    name: str
    bytes: int


def report_outputs(report: Report, folder: Path, bounds: Bounds, *, prefix: str = "") -> None:
    """Report the files in a folder as artifacts. A warning names those that are not kept, with the reasons.

    Args:
        report: its folder contains `folder`.
        folder: the output folder.
        bounds: limit which files are kept: those with the first names.
        prefix: starts the artifact names, such as `trial-3/`.
    """
    refused: list[str] = []
    count, total = 0, 0
    for name, size_or_reason in _entries(folder):
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
        path = str((folder / name).relative_to(report.folder))
        report.artifact(role, path, name=prefix + name)
    if refused:
        more = f", and {len(refused) - SHOWN} more" if len(refused) > SHOWN else ""
        names = ", ".join(refused[:SHOWN])
        report.warning("outputs_left_out", f"Files of the folder of outputs were not kept: {names}{more}.")


def _entries(folder: Path) -> Iterator[tuple[str, int | str]]:
    """Yield each file with its size, or with the reason why it is not kept; the model comes first."""
    entries = sorted(_walk(folder, ""), key=lambda entry: (entry[0] != MODEL_FILE, entry[0]))
    for name, entry in entries:
        if len(name) > MAX_NAME or not name.isprintable():
            yield name[:MAX_NAME], "its name is too long or not printable"
            continue
        try:
            facts = entry.stat(follow_symlinks=False)
        except OSError as error:
            yield name, str(error.strerror)
            continue
        yield name, facts.st_size if stat.S_ISREG(facts.st_mode) else "it is a link or no ordinary file"


def _walk(folder: Path, above: str, depth: int = 0) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:  # the script has removed it, or closed it
        return
    for entry in entries:
        name = f"{above}{entry.name}"
        if entry.is_dir(follow_symlinks=False) and depth < _DEPTH:
            yield from _walk(Path(entry.path), f"{name}/", depth + 1)
        else:
            yield name, entry
