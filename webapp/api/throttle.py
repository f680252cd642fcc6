"""A token bucket for each caller, in this process' memory: a guard against runaway scripts."""

import math
import threading
import time

from django.conf import settings

from webapp.http_errors import Throttled

_lock = threading.Lock()
_buckets: dict[str, tuple[float, float]] = {}
FORGET_ABOVE = 10_000


def take(caller: str) -> None:
    """Take one request out of the caller's bucket.

    Raises:
        Throttled: it is empty.
    """
    rate, burst = settings.TRAINYARD_API_RATE, settings.TRAINYARD_API_BURST
    wait = _take(caller, rate, burst, time.monotonic())
    if wait > 0:
        raise Throttled(
            f"More than {rate:g} requests a second for too long.", retry_after=max(1, math.ceil(wait))
        )


def forget() -> None:
    """Fill all buckets: tests give the same numbers to callers who are not the same."""
    with _lock:
        _buckets.clear()


def _take(key: str, rate: float, burst: float, now: float) -> float:
    """Return 0 and take one, or the seconds until there is one again."""
    with _lock:
        left, since = _buckets.get(key, (burst, now))
        left = min(burst, left + (now - since) * rate)
        if left < 1:
            _buckets[key] = (left, now)
            return (1 - left) / rate
        if len(_buckets) > FORGET_ABOVE:
            _buckets.clear()
        _buckets[key] = (left - 1, now)
        return 0.0
