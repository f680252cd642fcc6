"""Limits each caller's request rate with a token bucket in this process's memory.

Several web processes have separate buckets, so the installation's limit is a multiple of the setting.
"""

import math
import threading
import time

from django.conf import settings

from webapp.http_errors import Throttled

# Operations run in several threads.
_lock = threading.Lock()
_buckets: dict[str, tuple[float, float]] = {}
"""Caller → the tokens in the bucket, and the monotonic time in seconds at which there were so many."""

MAX_BUCKETS = 10_000
"""With more callers than this, all buckets are filled again, which bounds the memory."""


def consume(caller: str) -> None:
    """Take one token from the caller's bucket.

    Raises:
        Throttled: the bucket is empty.
    """
    rate, burst = settings.TRAINYARD_API_RATE, settings.TRAINYARD_API_BURST
    wait = _take_token(caller, rate, burst, time.monotonic())
    if wait > 0:
        raise Throttled(
            f"Too many requests: the limit is {rate:g} per second.", retry_after=max(1, math.ceil(wait))
        )


def reset() -> None:
    """Fill all buckets. For tests, whose callers reuse the same keys."""
    with _lock:
        _buckets.clear()


def _take_token(key: str, rate: float, burst: float, now: float) -> float:
    """Take a token and return 0, or return the seconds until the next token."""
    with _lock:
        tokens, since = _buckets.get(key, (burst, now))
        # Tokens are added when the bucket is used, so an idle caller costs nothing.
        tokens = min(burst, tokens + (now - since) * rate)
        if tokens < 1:
            _buckets[key] = (tokens, now)
            return (1 - tokens) / rate
        if len(_buckets) > MAX_BUCKETS:
            _buckets.clear()
        _buckets[key] = (tokens - 1, now)
        return 0.0
