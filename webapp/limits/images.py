"""Bounds how many images this process sends to the prediction server at once.

Each is in memory as a file, as base64 and as JSON: 32 MiB become more than 150.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from webapp.http_errors import Unavailable

AT_ONCE = 2
RETRY_SECONDS = 2
_places = threading.BoundedSemaphore(AT_ONCE)


@contextmanager
def place() -> Iterator[None]:
    """Occupy a place within the block.

    Raises:
        Unavailable: all places are occupied. The request does not wait, since it has a thread.
    """
    if not _places.acquire(blocking=False):
        raise Unavailable(
            f"The server is predicting {AT_ONCE} images already. Try again in a moment.",
            retry_after=RETRY_SECONDS,
        )
    try:
        yield
    finally:
        _places.release()
