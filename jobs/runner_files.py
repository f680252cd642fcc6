"""Opens and deletes files in folders that runners write, without following links that a runner left there.

A check of a path is not enough: a runner may replace any part of it by a link before the path is used.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def opened_parent(root: Path, relative: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """Open a file's folder below `root`; yield its descriptor and the file's name in it.

    Args:
        root: a folder.
        relative: the file's path below it.
        create: make the folders that are missing.

    Raises:
        OSError: a folder on the way is missing, or is a link.
        ValueError: the path is absolute, empty or leads out of `root`.
    """
    path = PurePath(relative)
    if not path.parts or path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{relative!r} is not a path below a folder")
    *folders, name = path.parts
    # The root itself may be a link: runners cannot replace it.
    descriptor = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
    try:
        for folder in folders:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(folder, dir_fd=descriptor)
            parent, descriptor = descriptor, os.open(folder, _FOLDER, dir_fd=descriptor)
            os.close(parent)
        yield descriptor, name
    finally:
        os.close(descriptor)


def open_regular(root: Path, relative: str, *, owner: int | None = None) -> int:
    """Open a regular file below `root` for reading, and return its descriptor.

    Args:
        root: a folder.
        relative: the file's path below it.
        owner: the user id that the file must have; None accepts any. A link may give another user's file a
            name in a runner's folder.

    Raises:
        OSError: it is missing, or no regular file that belongs to this owner.
        ValueError: see `opened_parent`.
    """
    with opened_parent(root, relative) as (parent, name):
        # Without blocking: it might be a pipe.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(name, flags, dir_fd=parent)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or owner not in (None, status.st_uid):
        os.close(descriptor)
        raise PermissionError(f"{relative!r} is not a regular file of the run")
    return descriptor


def remove_folder(root: Path, relative: str) -> None:
    """Delete a folder below `root` with its contents. A missing one is no error; a link is not followed."""
    with suppress(OSError, ValueError), opened_parent(root, relative) as (parent, name):
        shutil.rmtree(name, dir_fd=parent, ignore_errors=True)
