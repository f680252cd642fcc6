"""Makes items in a background thread before they are used, and measures how long their user waits."""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

AHEAD = 2
"""Items that are made in advance, so that a slow one delays its user only if two in a row are slow."""


class Waiting:
    """The time that the consumer has waited for prefetched items.

    Attributes:
        seconds: since the last `reset`.
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    def reset(self) -> None:
        """Begin a new measurement."""
        self.seconds = 0.0


def prefetched[Item](makers: Iterable[Callable[[], Item]], waiting: Waiting) -> Generator[Item]:
    """Yield what each of `makers` returns, in order. They are called in one thread, up to `AHEAD` in advance.

    Args:
        makers: make the items; an error is raised where the item would be yielded.
        waiting: the time spent on waiting for items is added to it.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
    ahead: deque[Future[Item]] = deque()
    remaining = iter(makers)
    try:
        while True:
            began = time.perf_counter()
            while len(ahead) <= AHEAD and (make := next(remaining, None)) is not None:
                ahead.append(pool.submit(make))
            if not ahead:
                return
            try:
                item = ahead.popleft().result()
            finally:
                waiting.seconds += time.perf_counter() - began
            yield item
    finally:
        # Without waiting for the thread, its item would still be made while the next epoch begins.
        pool.shutdown(cancel_futures=True)
