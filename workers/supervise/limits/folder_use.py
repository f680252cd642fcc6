"""Measures how many bytes a run has added to its own folders."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path


def size_of(folder: Path, *, most_files: int | None = None) -> int | None:
    """Return the bytes in the files below a folder; None if there are none.

    Args:
        folder: it may be missing. Links are not followed.
        most_files: about how many files and folders are measured; None measures all.
    """
    total = count = 0
    for parent, folders, names in os.walk(folder):
        count += len(folders) + len(names)
        for name in names:
            # A file may be removed meanwhile.
            with contextlib.suppress(OSError):
                total += Path(parent, name).lstat().st_size
        if most_files is not None and count > most_files:
            break
    return total if count else None


class FolderUse:
    """The bytes in folders beyond those that were in them at first, such as downloaded inputs.

    Args:
        folders: the folders.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._at_first = self._measure()

    def added(self) -> int:
        """Return the bytes that were added. Slow if there are many files: call it in a thread."""
        return max(0, self._measure() - self._at_first)

    def _measure(self) -> int:
        return sum(size_of(folder) or 0 for folder in self._folders)
