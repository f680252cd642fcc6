"""Metrics in Prometheus' text format."""

from workers.serving.metrics import Histogram, Metrics


def test_a_long_sum_changes_with_every_observation() -> None:
    histogram = Histogram("latency", "In microseconds.", [1.0])
    for value in (2_000_000_000, 3):
        histogram.observe(value)
    assert "latency_sum 2000000003" in list(histogram.lines())


def test_a_scrape_can_be_of_some_models_only() -> None:
    metrics = Metrics()
    for model in ("digits", "secret"):
        metrics.request_done(model, "predict", 200, 0.1)
    metrics.child_restarts.add(1)
    text = metrics.text({"digits"}).decode()
    assert 'model_name="digits"' in text
    assert "secret" not in text
    assert "\ntrainyard_serving_child_restarts_total 1\n" in text
    assert 'model_name="secret"' in metrics.text().decode()
