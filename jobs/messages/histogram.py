"""Computes histograms with logarithmic buckets: small, mergeable, and percentiles with a bounded error.

The buckets come from DDSketch (Masson, Rim and Lee, "DDSketch: A Fast and Fully-Mergeable Quantile Sketch
with Relative-Error Guarantees", PVLDB 12(12), 2019), without its limit on their number. Bucket `i` has the
values in (GAMMA**(i-1), GAMMA**i]. Adding two histograms' counts gives exactly the histogram of all values,
so percentiles over several processes and intervals are as exact as over one.
"""

import math
from collections.abc import Mapping

GAMMA = 1.04
RELATIVE_ERROR = (GAMMA - 1) / (GAMMA + 1)
"""The most that a percentile differs from the measured value at its rank: 2 %."""

MAX_BUCKET = 1000
"""Holds 10**17: in microseconds, 3,000 years."""

_PER_LOG = 1 / math.log(GAMMA)
_MIDDLE = 2 / (GAMMA + 1)


def bucket_of(value: float) -> int:
    """Return a value's bucket; values up to 1 are in bucket 0."""
    return math.ceil(math.log(value) * _PER_LOG) if value > 1 else 0


def value_of(bucket: int) -> float:
    """Return the value that represents a bucket: its relative distance to both ends is `RELATIVE_ERROR`."""
    return _MIDDLE * GAMMA**bucket


def percentile(buckets: Mapping[int, int], share: float) -> float | None:
    """Return a percentile by nearest rank, at most `RELATIVE_ERROR` from the measured value.

    Args:
        buckets: counts by bucket.
        share: the fraction of values that are not greater, such as 0.95.

    Returns:
        The percentile, in the values' unit; None if there are no values.
    """
    count = sum(buckets.values())
    if not count:
        return None
    # Rounded first: 0.95 * 100 is slightly more than 95 in binary.
    rank = max(1, math.ceil(round(share * count, 6)))
    for bucket in sorted(buckets):
        rank -= buckets[bucket]
        if rank <= 0:
            return value_of(bucket)
    return None
