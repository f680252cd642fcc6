"""Evaluates classifiers with one label per row (binary, multiclass) or several (multilabel)."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from workers.engine.evaluation.intervals import RowIndices, bootstrap, finite_or_none, metric_entry, wilson

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

TINY = 1e-7
"""Probabilities are clipped to this distance from 0 and 1 in a log loss, as in Keras."""

BINS = 10
CURVE_POINTS = 200


def probabilities(y_pred: npt.ArrayLike) -> Floats:
    """Convert a classifier's output to one column per class, with rows that sum to 1.

    Args:
        y_pred: probability of class 1, (rows,) or (rows, 1), or one per class, (rows, classes).

    Returns:
        (rows, classes) with at least two columns. Rows with NaN or infinite values are NaN.
    """
    p = np.asarray(y_pred, np.float64)
    p = p.reshape(len(p), -1)
    if p.shape[1] == 1:
        p = np.hstack([1 - p, p])
    total = p.sum(axis=1, keepdims=True)
    return np.divide(p, total, out=np.full_like(p, np.nan), where=np.isfinite(total) & (total > 0))


def predicted_classes(y_pred: npt.ArrayLike) -> Ints:
    """Return each row's most probable class, (rows,); -1 for rows that are not finite."""
    p = probabilities(y_pred)
    is_finite = np.isfinite(p).all(axis=1)
    return np.where(is_finite, np.where(np.isfinite(p), p, 0).argmax(axis=1), -1)


def row_losses(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> Floats:
    """Return each row's negative log probability of its true class, (rows,)."""
    p = probabilities(y_pred)
    truth = np.asarray(y_true).reshape(-1).astype(np.int64)
    return -np.log(np.clip(p[np.arange(len(p)), truth], TINY, 1.0))


def _confusion(truth: Ints, guess: Ints, classes: int) -> Ints:
    """Count (true, predicted) pairs. Rows without a predicted class are left out."""
    known = guess >= 0
    flat = np.bincount(truth[known] * classes + guess[known], minlength=classes * classes)
    return flat.reshape(classes, classes)


def _macro_f1(confusion: Ints, support: Ints) -> float:
    """Average F1 over the classes that occur among the true or predicted ones."""
    hits = np.diag(confusion)
    size = support + confusion.sum(axis=0)
    occurs = size > 0
    return float(np.mean(2 * hits[occurs] / size[occurs])) if occurs.any() else math.nan


def _per_class(hits: Ints, predicted: Ints, support: Ints, labels: Sequence[str]) -> list[dict[str, Any]]:
    def ratio(a: float, b: float) -> float | None:
        return a / b if b else None

    return [
        {
            "label": label,
            "precision": ratio(float(hit), float(guessed)),
            "recall": ratio(float(hit), float(real)),
            "f1": ratio(2 * float(hit), float(guessed + real)),
            "support": int(real),
        }
        for label, hit, guessed, real in zip(labels, hits, predicted, support, strict=True)
    ]


def calibration(confidence: Floats, correct: Bools) -> dict[str, Any]:
    """Compare confidence with accuracy in bins of equal width.

    Source: Guo et al. 2017, On Calibration of Modern Neural Networks, section 2.

    Args:
        confidence: probability of the predicted class, (rows,).
        correct: whether the prediction is correct, (rows,).

    Returns:
        `ece`: the expected calibration error, which is the mean absolute gap weighted by rows; `bins`: the
        bins that contain rows.
    """
    if confidence.size == 0 or not np.isfinite(confidence).all():
        return {"ece": None, "bins": []}
    index = np.minimum((confidence * BINS).astype(int), BINS - 1)
    bins = []
    for number in np.unique(index):
        inside = index == number
        bins.append(
            {
                "low": number / BINS,
                "high": (number + 1) / BINS,
                "rows": int(inside.sum()),
                "confidence": float(confidence[inside].mean()),
                "accuracy": float(correct[inside].mean()),
            }
        )
    ece = sum(b["rows"] * abs(b["confidence"] - b["accuracy"]) for b in bins) / confidence.size
    return {"ece": float(ece), "bins": bins}


def roc_auc(positive: Bools, score: Floats) -> float:
    """Return the area under the ROC curve, from ranks (Mann and Whitney 1947); NaN if a class is missing."""
    ones = int(positive.sum())
    zeros = positive.size - ones
    if ones == 0 or zeros == 0 or not np.isfinite(score).all():
        return math.nan
    from scipy.stats import rankdata  # importing takes half a second, and only some tasks need it

    ranks = rankdata(score)
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def _roc_curve(positive: Bools, score: Floats) -> list[tuple[float, float]]:
    """Return (false positive rate, true positive rate) pairs, at most `CURVE_POINTS` for a chart."""
    order = np.argsort(-score, kind="stable")
    last_of_tie = np.append(np.flatnonzero(np.diff(score[order])), score.size - 1)
    tpr = np.cumsum(positive[order])[last_of_tie] / positive.sum()
    fpr = np.cumsum(~positive[order])[last_of_tie] / (~positive).sum()
    keep = np.unique(np.linspace(0, fpr.size - 1, min(fpr.size, CURVE_POINTS)).astype(int))
    return [(0.0, 0.0), *((float(fpr[i]), float(tpr[i])) for i in keep)]


def _named(labels: Sequence[str], classes: int) -> list[str]:
    return [str(label) for label in labels] if len(labels) == classes else [str(i) for i in range(classes)]


def _mean_entry(values: Floats, seed: int) -> dict[str, Any]:
    """Return the entry of a mean over rows, (rows,)."""
    rows = len(values)
    interval = bootstrap(lambda drawn: float(values[drawn].mean()), rows, seed)
    return metric_entry(float(values.mean()), rows, interval, "bootstrap")


def _share_entry(right: Bools) -> dict[str, Any]:
    """Return the entry of the share of correct rows, (rows,)."""
    rows = len(right)
    return metric_entry(float(right.mean()), rows, wilson(int(right.sum()), rows), "wilson")


def _ece_entry(calibrated: dict[str, Any], rows: int) -> dict[str, Any]:
    return metric_entry(math.nan if calibrated["ece"] is None else calibrated["ece"], rows)


def evaluate_classes(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, class_labels: Sequence[str], seed: int
) -> dict[str, Any]:
    """Evaluate a classifier that predicts one class per row.

    Args:
        y_true: class numbers, shape (rows,) or (rows, 1).
        y_pred: probabilities, see `probabilities`.
        class_labels: one name per class, or empty.
        seed: of the bootstrap.

    Returns:
        See `evaluate.evaluate`.
    """
    truth = np.asarray(y_true).reshape(-1).astype(np.int64)
    p, guess = probabilities(y_pred), predicted_classes(y_pred)
    rows, classes = p.shape
    right = truth == guess
    confusion, support = _confusion(truth, guess, classes), np.bincount(truth, minlength=classes)
    labels = _named(class_labels, classes)
    calibrated = calibration(p.max(axis=1), right)
    result: dict[str, Any] = {
        "rows": rows,
        "nonfinite_rows": int((guess < 0).sum()),
        "metrics": {
            "accuracy": _share_entry(right),
            "log_loss": _mean_entry(row_losses(truth, p), seed),
            "f1_macro": _macro_f1_entry(truth, guess, classes, seed),
            "ece": _ece_entry(calibrated, rows),
        },
        "class_labels": labels,
        "per_class": _per_class(np.diag(confusion), confusion.sum(axis=0), support, labels),
        "confusion": confusion.tolist(),
        "calibration": calibrated,
    }
    if classes == 2:
        positive, score = truth == 1, p[:, 1]
        auc = _auc_entry(positive, score, seed)
        result["metrics"]["roc_auc"] = auc
        result["roc_curve"] = [] if auc["value"] is None else _roc_curve(positive, score)
    return result


def _macro_f1_entry(truth: Ints, guess: Ints, classes: int, seed: int) -> dict[str, Any]:
    def f1_of(drawn: RowIndices) -> float:
        table = _confusion(truth[drawn], guess[drawn], classes)
        return _macro_f1(table, np.bincount(truth[drawn], minlength=classes))

    rows = len(truth)
    return metric_entry(f1_of(np.arange(rows)), rows, bootstrap(f1_of, rows, seed), "bootstrap")


def _auc_entry(positive: Bools, score: Floats, seed: int) -> dict[str, Any]:
    rows = len(score)
    interval = bootstrap(lambda drawn: roc_auc(positive[drawn], score[drawn]), rows, seed)
    return metric_entry(roc_auc(positive, score), rows, interval, "bootstrap")


def _two_by_two(rows: int, hits: Ints, predicted: Ints, support: Ints) -> list[list[list[int]]]:
    """Return [[true negatives, false positives], [false negatives, true positives]] of each label."""
    return [
        [[int(rows - guessed - real + hit), int(guessed - hit)], [int(real - hit), int(hit)]]
        for hit, guessed, real in zip(hits, predicted, support, strict=True)
    ]


def evaluate_labels(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, class_labels: Sequence[str], seed: int
) -> dict[str, Any]:
    """Evaluate a multilabel classifier.

    `accuracy` is the share of correct labels, `exact_match` the share of rows with all labels correct. The
    bootstrap resamples whole rows, since the labels of a row depend on each other.

    Args:
        y_true: 0 or 1, (rows, labels).
        y_pred: probabilities, (rows, labels).
        class_labels: one name per label, or empty.
        seed: of the bootstrap.

    Returns:
        See `evaluate.evaluate`.
    """
    p = np.asarray(y_pred, np.float64).reshape(len(np.asarray(y_pred)), -1)
    truth, guess = np.asarray(y_true).reshape(p.shape) > 0.5, p > 0.5
    rows, count = p.shape
    is_finite = np.isfinite(p).all(axis=1)
    right = (truth == guess) & is_finite[:, None]
    confidence = np.where(guess, p, 1 - p)
    calibrated = calibration(confidence.reshape(-1), right.reshape(-1))
    hits, predicted, support = (truth & guess).sum(axis=0), guess.sum(axis=0), truth.sum(axis=0)
    labels = _named(class_labels, count)
    return {
        "rows": rows,
        "nonfinite_rows": int((~is_finite).sum()),
        "metrics": {
            "accuracy": _mean_entry(right.mean(axis=1), seed),
            "exact_match": _share_entry(right.all(axis=1)),
            "log_loss": _mean_entry(_mean_label_losses(truth, p), seed),
            "f1_macro": _label_f1_entry(truth, guess, seed),
            "ece": _ece_entry(calibrated, rows),
        },
        "class_labels": labels,
        "per_class": [
            {**entry, "roc_auc": finite_or_none(roc_auc(truth[:, k], p[:, k]))}
            for k, entry in enumerate(_per_class(hits, predicted, support, labels))
        ],
        "confusion_per_label": _two_by_two(rows, hits, predicted, support),
        "calibration": calibrated,
    }


def _mean_label_losses(truth: Bools, p: Floats) -> Floats:
    """Return each row's binary cross-entropy, averaged over its labels, (rows,)."""
    clipped = np.clip(p, TINY, 1 - TINY)
    losses: Floats = -np.where(truth, np.log(clipped), np.log1p(-clipped)).mean(axis=1)
    return losses


def _label_f1_entry(truth: Bools, guess: Bools, seed: int) -> dict[str, Any]:
    """Return the entry of F1 averaged over the labels that occur among the true or predicted ones."""

    def f1_of(drawn: RowIndices) -> float:
        hits = (truth[drawn] & guess[drawn]).sum(axis=0)
        size = truth[drawn].sum(axis=0) + guess[drawn].sum(axis=0)
        return float(np.mean(2 * hits[size > 0] / size[size > 0])) if (size > 0).any() else math.nan

    rows = len(truth)
    return metric_entry(f1_of(np.arange(rows)), rows, bootstrap(f1_of, rows, seed), "bootstrap")
