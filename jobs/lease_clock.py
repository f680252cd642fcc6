"""Measures the age of a lease on the machine of its holder."""

import time

_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def now() -> float:
    """Return seconds by a clock that only runs forward, also while the machine sleeps.

    `time.monotonic` is stopped then, so that the holder would take an expired lease for valid until its next
    renewal. Platforms without such a clock have that one. Values of both cannot be compared.
    """
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)
