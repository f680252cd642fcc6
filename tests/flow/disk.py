"""A small disk for a home, so that a test can fill it."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

MEBIBYTE = 2**20
SIZE = 256 * MEBIBYTE


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[str]:
    """Mount a disk of `SIZE` at `folder`; give the reason where that cannot be, else an empty text."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode:
        yield f"a tmpfs can only be mounted by root: {done.stderr.strip()}"
        return
    try:
        yield ""
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def leave(disk: Path, spare: int) -> Iterator[None]:
    """Take all space but `spare` bytes with one file, until the block ends."""
    free = os.statvfs(disk)
    with _ballast(disk) as file:
        os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - spare)
        yield


@contextlib.contextmanager
def leave_nothing(disk: Path) -> Iterator[None]:
    """Write until no byte more fits, while others write too; until the block ends."""
    with _ballast(disk) as file:
        for size in (MEBIBYTE, 4096):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)):
                    pass
        yield


@contextlib.contextmanager
def _ballast(disk: Path) -> Iterator[FileIO]:
    """Give a file to fill; it goes whatever happens, for a disk left full stops every test after this one."""
    ballast = disk / "ballast"
    try:
        with ballast.open("wb", buffering=0) as file:
            yield file
    finally:
        ballast.unlink()
