"""Metrics in Prometheus' text format."""

from workers.serving.metrics import Histogram


def test_a_long_sum_changes_with_every_observation() -> None:
    histogram = Histogram("latency", "In microseconds.", [1.0])
    for value in (2_000_000_000, 3):
        histogram.observe(value)
    assert "latency_sum 2000000003" in list(histogram.lines())
