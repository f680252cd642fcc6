"""Shortens the paths to local sockets: the kernel accepts about a hundred characters."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST = 100


@contextmanager
def short_path(address: Path) -> Iterator[str]:
    """Yield a path to the same socket that the kernel accepts, valid inside the block."""
    if len(os.fsencode(address)) <= LONGEST:
        yield str(address)
        return
    folder = os.open(address.parent, os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{address.name}"
    finally:
        os.close(folder)
