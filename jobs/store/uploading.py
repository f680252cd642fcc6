"""Writes complete files to fsspec file systems, moves them, and reads their times."""

import time
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

from fsspec.implementations.local import LocalFileSystem


def upload(fs: Any, path: Path, place: str) -> None:
    """Upload a file.

    Object storage shows an object only when it is complete. In a folder that several machines have mounted
    (`file://`), the file is renamed when it is.
    """
    if not isinstance(fs, LocalFileSystem):
        fs.put_file(str(path), place)
        return
    folder, name = _made_folder(fs, place)
    unfinished = f"{folder}/.put-{uuid.uuid4().hex}-{name[:40]}"
    try:
        fs.put_file(str(path), unfinished)
        Path(unfinished).replace(place)
    finally:
        Path(unfinished).unlink(missing_ok=True)


def move(fs: Any, source: str, place: str) -> None:
    """Move a file to another name."""
    if isinstance(fs, LocalFileSystem):
        _made_folder(fs, place)
    fs.mv(source, place)


def _made_folder(fs: LocalFileSystem, place: str) -> tuple[str, str]:
    """Make a file's folder, which object storage does not need. Return it and the file's name."""
    folder, _, name = place.rpartition("/")
    fs.makedirs(folder, exist_ok=True)
    return folder, name


def written_at(info: dict[str, Any]) -> float:
    """Return when an object was written. If unknown, it is now, so that the object is kept."""
    for key in ("LastModified", "last_modified", "updated", "mtime", "created"):
        match info.get(key):
            case datetime() as moment:
                return moment.timestamp()
            case int() | float() as seconds:
                return float(seconds)
            case str() as text:
                return datetime.fromisoformat(text).timestamp()
    return time.time()
