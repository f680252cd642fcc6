import math
from typing import Any

import numpy as np

from jobs.spec.gates import Floor, Slice
from jobs.spec.sections.search import Direction
from jobs.spec.signature import Signature
from workers.engine.arrays import Array
from workers.engine.evaluation.gate_metrics import Estimate, metric_function
from workers.engine.evaluation.gate_outcome import ChallengerMetric
from workers.engine.evaluation.gates import (
    baseline_gate,
    finite_gate,
    floor_gate,
    latency_gate,
    metric_gate,
    slice_gate,
)
from workers.engine.evaluation.signature_gate import signature_gate


def signature(
    shape: tuple[int | None, ...] = (8, 8), classes: int = 10, name: str = "input", dtype: str = "float32"
) -> Signature:
    return Signature.model_validate(
        {
            "inputs": [{"name": name, "dtype": dtype, "shape": shape}],
            "outputs": [{"name": "output", "dtype": "float32", "shape": (classes,)}],
        }
    )


def outputs_named(*names: str, shape: tuple[int | None, ...] = ()) -> Signature:
    outputs = [{"name": name, "dtype": "float32", "shape": shape} for name in names]
    return Signature.model_validate({**signature().model_dump(), "outputs": outputs})


def test_outputs_keep_their_names_and_may_change_their_order() -> None:
    champion = outputs_named("score", "next")
    assert signature_gate(outputs_named("next", "score"), champion).state == "passed"
    renamed = signature_gate(outputs_named("output_0", "output_1"), champion)
    assert (renamed.state, renamed.detail) == (
        "failed",
        "the outputs were score, next; they are output_0, output_1",
    )
    assert signature_gate(outputs_named("score", "next", shape=(2,)), champion).state == "failed"


def test_the_only_output_keeps_its_name_and_form() -> None:
    champion = outputs_named("score")
    assert signature_gate(outputs_named("score"), champion).state == "passed"
    renamed = signature_gate(outputs_named("probability"), champion)
    assert (renamed.state, renamed.detail) == ("failed", "the outputs were score; they are probability")
    assert signature_gate(outputs_named("score", shape=(2,)), champion).state == "failed"


def test_a_signature_may_become_more_general_but_not_change() -> None:
    assert signature_gate(signature(), signature()).state == "passed"
    assert signature_gate(signature((None, 8)), signature()).state == "passed"
    assert signature_gate(signature(), None).state == "skipped"
    for other in (signature((8, 9)), signature((8,)), signature(name="x"), signature(dtype="int32"),
                  signature(classes=3)):  # fmt: skip
        assert signature_gate(other, signature()).state == "failed"
    assert signature_gate(signature(), signature((None, 8))).state == "failed"


def columns_of(**types: str) -> Signature:
    columns = [{"name": name, "type": kind} for name, kind in types.items()]
    return Signature.model_validate({**signature().model_dump(), "columns": columns})


def test_a_column_may_take_more_values_but_not_fewer() -> None:
    champion = columns_of(age="integer", city="category")
    for other in ({"age": "integer"}, {"age": "number"}, {"age": "number", "new": "date"}):
        assert signature_gate(columns_of(city="category", **other), champion).state == "passed"
    narrower = signature_gate(champion, columns_of(age="number", city="category"))
    assert (narrower.state, narrower.detail) == ("failed", "column 'age' was number, is integer")
    assert signature_gate(columns_of(age="integer"), champion).detail == "column 'city' is missing"


def value(
    number: float,
    metric: str = "accuracy",
    direction: Direction = "max",
    rows: int = 360,
    weighted_by: str = "",
) -> ChallengerMetric:
    estimate = Estimate(number, number - 0.02, number + 0.02)
    return ChallengerMetric(metric, direction, estimate, rows, weighted_by)


def test_accuracy_may_fall_by_the_tolerance_and_no_more() -> None:
    def judged(ours: float, tolerance: float = 0.01) -> Any:
        return metric_gate(value(ours), 0.96, tolerance)

    assert judged(0.955).state == "passed"
    assert judged(0.945).state == "failed"
    assert judged(0.945, tolerance=0.02).state == "passed"
    assert judged(math.nan).state == "failed"


def test_an_error_may_grow_by_a_share_and_no_more() -> None:
    def judged(ours: float, champion: float = 50.0) -> Any:
        return metric_gate(value(ours, "rmse", "min", 89), champion, 0.01)

    assert judged(50.4).state == "passed"
    assert judged(50.6).state == "failed"
    assert judged(50.6, math.nan).state == "not_evaluated"


def test_a_gate_shows_its_rule_with_every_number() -> None:
    gate = metric_gate(value(0.945), 0.96, 0.01)
    assert gate.rule == (
        "accuracy on the test rows at least 0.95: the champion's 0.96 minus the tolerance of 0.01"
    )
    assert (gate.value, gate.limit, gate.champion, gate.rows) == (0.945, 0.95, 0.96, 360)
    assert (gate.metric, gate.low, gate.high) == ("accuracy", 0.945 - 0.02, 0.945 + 0.02)


def test_a_floor_is_a_lower_bound_or_an_upper_one_by_the_metric() -> None:
    high = Floor(metric="roc_auc", limit=0.8)
    assert floor_gate(high, value(0.81, "roc_auc")).state == "passed"
    assert floor_gate(high, value(0.79, "roc_auc")).state == "failed"
    low = Floor(metric="log_loss", limit=0.4)
    assert floor_gate(low, value(0.39, "log_loss", "min")).state == "passed"
    assert floor_gate(low, value(0.41, "log_loss", "min")).state == "failed"


def test_a_slice_must_reach_its_limit_and_the_champion() -> None:
    one = Slice(column="city", value="Paris", limit=0.7)

    def judged(ours: float, champion: float | None, one: Any = one) -> Any:
        return slice_gate(one, value(ours), champion, 0.01)

    assert (judged(0.71, None).state, judged(0.69, None).state) == ("passed", "failed")
    assert (judged(0.85, 0.86).state, judged(0.84, 0.86).state) == ("passed", "failed")
    assert judged(0.69, 0.5).state == "failed"
    assert judged(0.1, None, Slice(column="city", value="Paris")).state == "skipped"


def test_the_tolerance_of_a_slice_is_a_percentage_where_lower_values_are_better() -> None:
    one = Slice(column="city", value="Paris")
    assert slice_gate(one, value(50.4, "rmse", "min", 40), 50.0, 0.01).rule.endswith(
        "at most 50.5, the champion's 50 with the tolerance of 1 %"
    )


def test_a_latency_above_the_ceiling_fails() -> None:
    assert latency_gate(4.0, 5.0, "").state == "passed"
    assert latency_gate(6.0, 5.0, "").state == "failed"
    assert latency_gate(6.0, None, "").state == "passed"


def predictions_for(truth: Array, share: float, classes: int, rng: np.random.Generator) -> Array:
    """Return correct predictions for about `share` of the rows and random ones for the others."""
    guess = np.where(rng.random(len(truth)) < share, truth, rng.integers(0, classes, len(truth)))
    return 0.8 * np.eye(classes)[guess] + 0.2 / classes


def test_only_a_model_that_has_learned_beats_the_baseline() -> None:
    rng = np.random.default_rng(0)
    train, test = rng.integers(0, 10, 1000), rng.integers(0, 10, 360)
    learned = baseline_gate("accuracy", "multiclass", train, test, predictions_for(test, 0.5, 10, rng))
    chance = baseline_gate("accuracy", "multiclass", train, test, predictions_for(test, 0.0, 10, rng))
    assert (learned.state, chance.state) == ("passed", "failed")
    assert learned.limit == chance.limit


def test_a_rare_class_passes_by_log_loss_where_accuracy_cannot_improve() -> None:
    rng = np.random.default_rng(0)
    train, test = (rng.random(4000) < 0.03).astype(int), (rng.random(2000) < 0.03).astype(int)
    by_loss = baseline_gate("accuracy", "binary", train, test, np.where(test == 1, 0.4, 0.01))
    assert by_loss.state == "passed"
    # the values shown are those of the comparison that passed, and both are listed
    assert by_loss.metric == "log_loss"
    value, limit = by_loss.value, by_loss.limit
    assert isinstance(value, float) and isinstance(limit, float)
    assert value < limit
    assert [(one.metric, one.passed) for one in by_loss.alternatives] == [
        ("accuracy", False), ("log_loss", True),
    ]  # fmt: skip
    assert "a gain in log_loss also counts" in by_loss.rule
    assert baseline_gate("accuracy", "binary", train, test, np.full(2000, 0.03)).state == "failed"


def test_a_model_under_class_weights_passes_by_its_auc_where_accuracy_and_log_loss_are_worse() -> None:
    rng = np.random.default_rng(0)
    train, test = (rng.random(4000) < 0.08).astype(int), (rng.random(500) < 0.08).astype(int)
    p = 1 / (1 + np.exp(-(rng.normal(size=500) + 1.5 * test)))
    by_accuracy = baseline_gate("accuracy", "binary", train, test, p)
    by_auc = baseline_gate("roc_auc", "binary", train, test, p)
    assert (by_accuracy.state, by_auc.state) == ("failed", "passed")
    assert (by_auc.limit, by_auc.metric) == (0.5, "roc_auc")
    chance = np.random.default_rng(1).random(500)
    assert baseline_gate("roc_auc", "binary", train, test, chance).state == "failed"


def test_recall_has_no_baseline_because_a_constant_can_have_all_of_it() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(500) < 0.3).astype(int)
    all_positive = np.full(500, 0.9)
    assert metric_function("recall", "binary")(y, all_positive, None) == 1.0
    gate = baseline_gate("recall", "binary", y, y, all_positive)
    assert (gate.state, gate.metric) == ("failed", "roc_auc")


def test_regression_and_multilabel_have_their_baselines() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=(300, 1))
    assert baseline_gate("rmse", "regression", y, y, y + 0.3 * rng.normal(size=y.shape)).state == "passed"
    assert baseline_gate("rmse", "regression", y, y, rng.normal(size=y.shape)).state == "failed"
    assert baseline_gate("rmse", "regression", y, y, np.full(y.shape, np.nan)).state == "failed"
    labels = (rng.random((300, 3)) < 0.4).astype(float)
    assert (
        baseline_gate("accuracy", "multilabel", labels, labels, np.clip(labels, 0.1, 0.9)).state == "passed"
    )
    assert baseline_gate("accuracy", "multilabel", labels, labels, rng.random(labels.shape)).state == "failed"


def test_a_single_nan_fails_the_finite_gate() -> None:
    assert finite_gate([np.ones(3)]).state == "passed"
    assert finite_gate([np.ones(3), np.array([np.nan])]).state == "failed"
