"""Bounds this process's open event streams and sockets: for each person, and in all."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from webapp.http_errors import Throttled

MAX_PER_PERSON = 20
MAX_IN_ALL = 1000
RETRY_SECONDS = 30

SOCKETS, STREAMS = "pages", "event streams"
"""The kinds of readers, in the words of the message. A person may have `MAX_PER_PERSON` of each."""

_open: Counter[tuple[str, int]] = Counter()


def check(what: str, user_id: int) -> None:
    """Check whether a person may open one more stream or socket.

    Raises:
        Throttled: they have too many, or all people together have. The message fits the reason of a socket's
            close (123 bytes).
    """
    if _open[what, user_id] >= MAX_PER_PERSON:
        raise Throttled(
            f"{MAX_PER_PERSON} of your {what} already have live updates. Close some of them first.",
            retry_after=RETRY_SECONDS,
        )
    if _open.total() >= MAX_IN_ALL:
        raise Throttled(
            "This installation has as many live updates as it allows. Try again later.",
            retry_after=RETRY_SECONDS,
        )


@contextmanager
def counted(what: str, user_id: int) -> Iterator[None]:
    """Count a stream or a socket within the block.

    Raises:
        Throttled: as `check`.
    """
    check(what, user_id)
    _open[what, user_id] += 1
    try:
        yield
    finally:
        _open[what, user_id] -= 1
        if not _open[what, user_id]:
            del _open[what, user_id]
