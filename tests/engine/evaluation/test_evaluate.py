import csv
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics as reference

from jobs.messages.reports.evaluation import (
    EVALUATION,
    ClassEvaluation,
    LabelEvaluation,
    RegressionEvaluation,
)
from jobs.spec.sections.measures import primary_metric
from tests.present import present
from workers.engine.arrays import Array
from workers.engine.evaluation.evaluate import evaluate, scores, write_predictions
from workers.engine.evaluation.intervals import bootstrap, wilson


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def multiclass(rows: int = 300, classes: int = 4, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, rows)
    return truth, softmax(rng.normal(size=(rows, classes)) + 2 * np.eye(classes)[truth])


def test_multiclass_agrees_with_scikit_learn() -> None:
    truth, p = multiclass()
    evaluation = evaluate("multiclass", truth, p, ["a", "b", "c", "d"])
    assert isinstance(evaluation, ClassEvaluation)
    guess = p.argmax(axis=1)
    values = scores(evaluation)
    assert values["accuracy"] == pytest.approx(reference.accuracy_score(truth, guess))
    assert values["log_loss"] == pytest.approx(reference.log_loss(truth, p))
    assert values["f1_macro"] == pytest.approx(reference.f1_score(truth, guess, average="macro"))
    assert np.array_equal(evaluation.confusion, reference.confusion_matrix(truth, guess))
    precision, recall, f1, support = reference.precision_recall_fscore_support(truth, guess)
    for k, entry in enumerate(evaluation.per_class):
        assert entry.label == "abcd"[k]
        shares = (present(entry.precision), present(entry.recall), present(entry.f1))
        assert shares == pytest.approx((precision[k], recall[k], f1[k]))
        assert entry.support == support[k]


def test_every_metric_has_its_rows_and_an_interval_that_contains_the_value() -> None:
    truth, p = multiclass()
    for name, metric in evaluate("multiclass", truth, p).metrics.items():
        assert metric.rows == 300
        if name != "ece":
            assert present(metric.low) <= present(metric.value) <= present(metric.high)
    assert evaluate("multiclass", truth, p).metrics["accuracy"].interval == "wilson"


def test_one_column_and_two_columns_of_a_binary_model_mean_the_same() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 200)
    p = 1 / (1 + np.exp(-(rng.normal(size=200) + 2 * truth - 1)))
    flat, column = evaluate("binary", truth, p), evaluate("binary", truth[:, None], p[:, None])
    both = evaluate("binary", truth, np.stack([1 - p, p], axis=1))
    assert scores(flat) == scores(column) == pytest.approx(scores(both))
    assert flat.metrics["roc_auc"].value == pytest.approx(reference.roc_auc_score(truth, p))
    assert isinstance(flat, ClassEvaluation)
    assert (present(flat.roc_curve)[0], present(flat.roc_curve)[-1]) == ((0.0, 0.0), (1.0, 1.0))


def test_each_point_of_a_roc_curve_has_the_threshold_that_gives_it() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 50) == 1
    p = rng.random(50).round(2)
    evaluation = evaluate("binary", truth, p)
    assert isinstance(evaluation, ClassEvaluation)
    points = zip(present(evaluation.roc_curve)[1:], present(evaluation.roc_thresholds), strict=True)
    for (false, true), threshold in points:
        assert false == pytest.approx((p >= threshold)[~truth].mean())
        assert true == pytest.approx((p >= threshold)[truth].mean())


def test_roc_auc_is_null_when_only_one_class_occurs() -> None:
    evaluation = evaluate("binary", np.zeros(5), np.full(5, 0.2))
    assert evaluation.metrics["roc_auc"].value is None
    assert EVALUATION.validate_json(evaluation.model_dump_json()) == evaluation


def test_a_perfectly_calibrated_model_has_no_calibration_error() -> None:
    p = np.repeat([0.85, 0.65], 100)
    truth = np.r_[np.ones(85), np.zeros(15), np.ones(65), np.zeros(35)]
    evaluation = evaluate("binary", truth, p)
    assert evaluation.metrics["ece"].value == pytest.approx(0, abs=1e-12)
    assert isinstance(evaluation, ClassEvaluation)
    assert present(evaluation.calibration).bias == pytest.approx(0, abs=1e-12)


def test_rows_with_nan_count_as_wrong_and_do_not_reach_the_json() -> None:
    truth, p = multiclass(rows=10)
    p[:2] = np.nan
    evaluation = evaluate("multiclass", truth, p)
    assert evaluation.nonfinite_rows == 2
    assert present(evaluation.metrics["accuracy"].value) <= 0.8
    assert evaluation.metrics["log_loss"].value is None
    assert EVALUATION.validate_json(evaluation.model_dump_json()) == evaluation


def test_multilabel_agrees_with_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, (100, 3))
    p = np.clip(0.3 + 0.4 * truth + 0.2 * rng.normal(size=truth.shape), 0.01, 0.99)
    evaluation = evaluate("multilabel", truth, p, ["x", "y", "z"])
    assert isinstance(evaluation, LabelEvaluation)
    guess = p > 0.5
    assert evaluation.metrics["exact_match"].value == pytest.approx(reference.accuracy_score(truth, guess))
    assert evaluation.metrics["f1_macro"].value == pytest.approx(
        reference.f1_score(truth, guess, average="macro")
    )
    assert np.array_equal(evaluation.confusion_per_label, reference.multilabel_confusion_matrix(truth, guess))
    assert EVALUATION.validate_json(evaluation.model_dump_json()) == evaluation


@pytest.mark.parametrize("outputs", [1, 2])
def test_regression_agrees_with_scikit_learn(outputs: int) -> None:
    rng = np.random.default_rng(3)
    truth = rng.normal(size=(700, outputs))
    guess = truth + 0.3 * rng.normal(size=truth.shape)
    evaluation = evaluate("regression", truth, guess)
    values = scores(evaluation)
    assert values["mae"] == pytest.approx(reference.mean_absolute_error(truth, guess))
    assert values["rmse"] == pytest.approx(math.sqrt(reference.mean_squared_error(truth, guess)))
    assert values["r2"] == pytest.approx(reference.r2_score(truth, guess))
    assert isinstance(evaluation, RegressionEvaluation)
    assert len(evaluation.outputs) == outputs
    assert len(evaluation.outputs[0].pairs) == 500
    assert sum(evaluation.outputs[0].histogram.counts) == 700
    assert EVALUATION.validate_json(evaluation.model_dump_json()) == evaluation


@pytest.mark.parametrize("residuals", [[1.0, 1 + 2**-52], [5e-324, 1e-323], [1e16, 1e16 + 2], [0.0, 0.0]])
def test_residuals_that_hardly_differ_have_a_histogram(residuals: list[float]) -> None:
    truth = np.repeat(residuals, 20)[:, None]
    evaluation = evaluate("regression", truth, np.zeros_like(truth))
    assert isinstance(evaluation, RegressionEvaluation)
    histogram = evaluation.outputs[0].histogram
    assert sum(histogram.counts) == 40
    assert all(low < high for low, high in itertools.pairwise(histogram.edges))


def test_regression_survives_a_diverged_model() -> None:
    evaluation = evaluate("regression", np.arange(4.0), np.array([0.0, np.nan, np.inf, 3.0]))
    assert evaluation.nonfinite_rows == 2
    assert evaluation.metrics["rmse"].value is None
    assert EVALUATION.validate_json(evaluation.model_dump_json()) == evaluation


def test_the_same_seed_gives_the_same_intervals() -> None:
    truth, p = multiclass()
    assert evaluate("multiclass", truth, p, seed=5) == evaluate("multiclass", truth, p, seed=5)
    assert evaluate("multiclass", truth, p, seed=5) != evaluate("multiclass", truth, p, seed=6)


def test_different_lengths_are_rejected_with_both_numbers() -> None:
    with pytest.raises(ValueError, match="3 true rows and 2 predicted"):
        evaluate("regression", np.zeros(3), np.zeros(2))


def test_wilson_stays_inside_zero_and_one() -> None:
    assert wilson(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert wilson(0, 10)[0] == 0.0


def test_intervals_of_f1_and_auc_are_those_of_resampled_rows() -> None:
    from workers.engine.evaluation.roc import roc_auc

    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 600)
    score = np.round(1 / (1 + np.exp(-(2 * truth - 1 + rng.normal(0, 2, 600)))), 2)  # with ties
    metrics = evaluate("binary", truth, score).metrics

    def f1(rows: Array) -> float:
        t, g = truth[rows] == 1, score[rows] > 0.5
        return np.mean([2 * (a & b).sum() / (a.sum() + b.sum()) for a, b in ((t, g), (~t, ~g))])

    def auc(rows: Array) -> float:
        return roc_auc(truth[rows] == 1, score[rows])

    for name, statistic in (("f1_macro", f1), ("roc_auc", auc)):
        expected = bootstrap(statistic, 600, seed=2)
        assert [metrics[name].low, metrics[name].high] == pytest.approx(expected, abs=0.006), name


def test_bootstrap_of_a_mean_is_about_two_standard_errors_wide() -> None:
    values = np.random.default_rng(0).normal(size=400)
    low, high = bootstrap(lambda i: float(values[i].mean()), 400, seed=0)
    assert (high - low) / 2 == pytest.approx(1.96 * values.std() / 20, rel=0.1)


def test_primary_metrics_have_the_right_direction() -> None:
    assert primary_metric("binary") == ("accuracy", "max")
    assert primary_metric("regression") == ("rmse", "min")


def read(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_predictions_of_a_classifier_name_the_classes(tmp_path: Path) -> None:
    write_predictions(tmp_path / "p.csv", "binary", [7, 9], [0, 1], [0.25, 0.75], ["no", "yes"])
    assert read(tmp_path / "p.csv") == [
        ["row", "y_true", "y_pred", "p_no", "p_yes"],
        ["7", "no", "no", "0.75", "0.25"],
        ["9", "yes", "yes", "0.25", "0.75"],
    ]


def test_a_class_that_a_spreadsheet_would_evaluate_is_quoted_and_a_number_is_not(tmp_path: Path) -> None:
    write_predictions(tmp_path / "p.csv", "binary", [7, 9], [0, 1], [0.25, 0.75], ["-1", "=cmd()|x"])
    assert read(tmp_path / "p.csv") == [
        ["row", "y_true", "y_pred", "p_-1", "p_=cmd()|x"],
        ["7", "-1", "-1", "0.75", "0.25"],
        ["9", "'=cmd()|x", "'=cmd()|x", "0.25", "0.75"],
    ]


def test_predictions_of_a_regressor_are_written_with_the_true_values(tmp_path: Path) -> None:
    write_predictions(tmp_path / "p.csv", "regression", [3], [1.5], [[1.25]])
    assert read(tmp_path / "p.csv") == [["row", "y_true", "y_pred"], ["3", "1.5", "1.25"]]
