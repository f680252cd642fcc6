"""Copies of checkpoints in object storage, from which another machine resumes.

A copy is one file below `checkpoints/`, named after the checkpoint's folder. Unlike artifacts, copies are
deleted at once: a long training replaces thousands of them. Nothing here proves that a copy is complete: its
row does, and a worker that reads it compares each file with the checkpoint's manifest.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import fsspec

from jobs.errors import NotFound
from jobs.store.permission import Permission, always_permitted
from jobs.store.uploading import upload, written_at

FOLDER = "checkpoints"
_SUFFIX = ".tar"


class CopyEntry(NamedTuple):
    """A stored copy: the checkpoint's folder, its size, and when it was written, in seconds since 1970."""

    folder: str
    bytes: int
    time: float


class CheckpointCopies:
    """The copies at an fsspec URL. Folders are relative to the root of checkpoints.

    Args:
        fs: the file system.
        root: the store's path in it.
        permission: raises if the store belongs to another installation. Copies are named by the numbers of
            jobs, which both installations have, so one would replace and delete those of the other.
    """

    def __init__(
        self, fs: fsspec.AbstractFileSystem, root: str, permission: Permission = always_permitted
    ) -> None:
        self._fs: Any = fs
        self._require_permission = permission
        self._root = f"{root}/{FOLDER}"

    def _place(self, folder: str) -> str:
        return f"{self._root}/{folder}{_SUFFIX}"

    def put(self, folder: str, archive: Path) -> None:
        """Upload a checkpoint's archive. An earlier copy is replaced."""
        self._require_permission()
        upload(self._fs, archive, self._place(folder))

    def get(self, folder: str, archive: Path) -> None:
        """Download a checkpoint's archive.

        Raises:
            NotFound: there is no copy.
            OSError: the store does not answer.
        """
        self._fs.invalidate_cache()
        try:
            self._fs.get_file(self._place(folder), str(archive))
        except FileNotFoundError as error:
            raise NotFound(f"the store has no copy of checkpoint {folder}") from error

    def erase(self, folder: str) -> None:
        """Delete a copy. A missing one is no error."""
        self._require_permission()
        self._fs.invalidate_cache()
        if self._fs.exists(self._place(folder)):
            self._fs.rm_file(self._place(folder))

    def entries(self) -> Iterator[CopyEntry]:
        """Yield all copies."""
        self._fs.invalidate_cache()
        try:
            files = self._fs.find(self._root, detail=True)
        except FileNotFoundError:
            return
        for name, info in files.items():
            if name.endswith(_SUFFIX):
                # File systems differ in whether names begin with a slash.
                folder = name.split(f"{self._root.lstrip('/')}/", 1)[-1].removesuffix(_SUFFIX)
                yield CopyEntry(folder, int(info.get("size") or 0), written_at(info))
