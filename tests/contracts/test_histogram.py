"""Percentiles from merged histograms, compared with the values' percentiles."""

import numpy as np
import pytest

from jobs.messages.histogram import (
    MAX_BUCKET,
    RELATIVE_ERROR,
    bucket_of,
    percentile,
    value_of,
)
from jobs.messages.traffic import Tally


def counted(values: np.ndarray) -> dict[int, int]:
    buckets: dict[int, int] = {}
    for value in values:
        buckets[bucket_of(value)] = buckets.get(bucket_of(value), 0) + 1
    return buckets


@pytest.mark.parametrize("share", [0.0, 0.5, 0.95, 0.99, 1.0])
def test_a_percentile_is_within_two_percent_of_the_value_at_its_rank(share: float) -> None:
    values = np.random.default_rng(3).lognormal(8, 2, 5000)
    exact = np.percentile(values, 100 * share, method="inverted_cdf")
    estimate = percentile(counted(values), share)
    assert estimate == pytest.approx(exact, rel=RELATIVE_ERROR * 1.0001)
    assert RELATIVE_ERROR < 0.02


def test_rows_of_small_batches_are_exact() -> None:
    assert [round(value_of(bucket_of(rows))) for rows in range(1, 26)] == list(range(1, 26))


def test_merging_tallies_gives_the_percentiles_of_all_values() -> None:
    first, second, both = Tally(), Tally(), Tally()
    for number in range(1, 2001):
        for tally in ((first, second)[number % 2], both):
            tally.count_request(200, number / 1000)
    first.add(second.counts())
    assert first.latency == both.latency
    assert percentile(first.latency, 0.5) == pytest.approx(1e6, rel=0.02)


def test_there_is_no_percentile_of_nothing_and_no_bucket_beyond_the_limit() -> None:
    assert percentile({}, 0.5) is None
    assert bucket_of(0) == bucket_of(1) == 0
    assert bucket_of(1e17) <= MAX_BUCKET
