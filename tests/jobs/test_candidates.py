"""Candidates of a search are in the order of the metric that decides."""

from typing import Any

import pytest

from jobs.queries.runs import evaluations


def summary(label: str, **test: float | None) -> dict[str, Any]:
    return {"label": label, "test": test}


@pytest.mark.parametrize(
    ("objective", "metric", "order"),
    [
        ("val_accuracy", "accuracy", ["b", "a", "c"]),
        ("val_loss", "log_loss", ["a", "b", "c"]),
        ("val_auc", "roc_auc", ["c", "b", "a"]),
    ],
)
def test_the_best_by_the_deciding_metric_is_the_first(objective: str, metric: str, order: list[str]) -> None:
    summaries = [
        summary("a", accuracy=0.5, log_loss=0.1, roc_auc=None),
        summary("b", accuracy=0.75, log_loss=0.2, roc_auc=0.5),
        summary("c", accuracy=float("nan"), log_loss=0.3, roc_auc=0.75),
    ]
    assert evaluations.deciding_metric(summaries, objective) == metric
    assert [each["label"] for each in evaluations.best_first(summaries, metric)] == order


def test_an_objective_without_a_test_metric_decides_nothing() -> None:
    assert evaluations.deciding_metric([summary("a", accuracy=0.5)], "val_own_figure") == ""
