"""Evaluation of classifiers: one label a row (binary, multiclass) and several (multilabel)."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from workers.engine.evaluation.intervals import Rows, bootstrap, finite, measured, wilson

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

TINY = 1e-7
"""Probabilities are kept this far from 0 and 1 in a log loss, as Keras does."""

BINS = 10
CURVE_POINTS = 200


def probabilities(y_pred: npt.ArrayLike) -> Floats:
    """Bring a classifier's output to one column a class, each row summing to 1.

    Args:
        y_pred: shape (rows,) or (rows, 1): probability of class 1; else (rows, classes).

    Returns:
        Shape (rows, classes), at least two columns; rows that are not finite stay so.
    """
    p = np.asarray(y_pred, np.float64)
    p = p.reshape(len(p), -1)
    if p.shape[1] == 1:
        p = np.hstack([1 - p, p])
    total = p.sum(axis=1, keepdims=True)
    return np.divide(p, total, out=np.full_like(p, np.nan), where=np.isfinite(total) & (total > 0))


def predicted_classes(y_pred: npt.ArrayLike) -> Ints:
    """Return each row's most probable class; -1, which no class is, where the row is not finite."""
    p = probabilities(y_pred)
    sound = np.isfinite(p).all(axis=1)
    return np.where(sound, np.where(np.isfinite(p), p, 0).argmax(axis=1), -1)


def row_losses(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> Floats:
    """Return each row's -log(probability given to its true class), shape (rows,)."""
    p = probabilities(y_pred)
    truth = np.asarray(y_true).reshape(-1).astype(np.int64)
    return -np.log(np.clip(p[np.arange(len(p)), truth], TINY, 1.0))


def _confusion(truth: Ints, guess: Ints, classes: int) -> Ints:
    """Count (true, predicted) pairs; a row predicted as no class counts for none of them."""
    known = guess >= 0
    flat = np.bincount(truth[known] * classes + guess[known], minlength=classes * classes)
    return flat.reshape(classes, classes)


def _macro_f1(confusion: Ints, support: Ints) -> float:
    """Average F1 over the classes that occur, in truth or among predictions."""
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
    """Compare stated confidence with the share of right answers, in equal bins (Guo et al. 2017).

    Returns:
        `ece`: mean absolute gap, weighted by rows; `bins`: those that hold rows.
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
    """Return the area under the ROC curve as a rank sum (Mann and Whitney 1947); NaN without both classes."""
    ones = int(positive.sum())
    zeros = positive.size - ones
    if ones == 0 or zeros == 0 or not np.isfinite(score).all():
        return math.nan
    from scipy.stats import rankdata  # takes half a second, and only some tasks measure this

    ranks = rankdata(score)
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def _roc_curve(positive: Bools, score: Floats) -> list[tuple[float, float]]:
    """List (false positive rate, true positive rate), thinned to what a chart can show."""
    order = np.argsort(-score, kind="stable")
    last_of_tie = np.append(np.flatnonzero(np.diff(score[order])), score.size - 1)
    tpr = np.cumsum(positive[order])[last_of_tie] / positive.sum()
    fpr = np.cumsum(~positive[order])[last_of_tie] / (~positive).sum()
    keep = np.unique(np.linspace(0, fpr.size - 1, min(fpr.size, CURVE_POINTS)).astype(int))
    return [(0.0, 0.0), *((float(fpr[i]), float(tpr[i])) for i in keep)]


def _named(labels: Sequence[str], classes: int) -> list[str]:
    return [str(label) for label in labels] if len(labels) == classes else [str(i) for i in range(classes)]


def _measured_mean(values: Floats, seed: int) -> dict[str, Any]:
    """Measure the mean of one number a row."""
    rows = len(values)
    interval = bootstrap(lambda drawn: float(values[drawn].mean()), rows, seed)
    return measured(float(values.mean()), rows, interval, "bootstrap")


def _measured_share(right: Bools) -> dict[str, Any]:
    """Measure the share of rows that are right."""
    rows = len(right)
    return measured(float(right.mean()), rows, wilson(int(right.sum()), rows), "wilson")


def _measured_ece(calibrated: dict[str, Any], rows: int) -> dict[str, Any]:
    return measured(math.nan if calibrated["ece"] is None else calibrated["ece"], rows)


def evaluate_classes(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, class_labels: Sequence[str], seed: int
) -> dict[str, Any]:
    """Evaluate a classifier that gives each row one of several classes.

    Args:
        y_true: class numbers, shape (rows,) or (rows, 1).
        y_pred: probabilities, see `probabilities`.
        class_labels: one name a class, or empty.
        seed: of the bootstrap.
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
            "accuracy": _measured_share(right),
            "log_loss": _measured_mean(row_losses(truth, p), seed),
            "f1_macro": _measured_macro_f1(truth, guess, classes, seed),
            "ece": _measured_ece(calibrated, rows),
        },
        "class_labels": labels,
        "per_class": _per_class(np.diag(confusion), confusion.sum(axis=0), support, labels),
        "confusion": confusion.tolist(),
        "calibration": calibrated,
    }
    if classes == 2:
        positive, score = truth == 1, p[:, 1]
        auc = _measured_auc(positive, score, seed)
        result["metrics"]["roc_auc"] = auc
        result["roc_curve"] = [] if auc["value"] is None else _roc_curve(positive, score)
    return result


def _measured_macro_f1(truth: Ints, guess: Ints, classes: int, seed: int) -> dict[str, Any]:
    def f1_of(drawn: Rows) -> float:
        table = _confusion(truth[drawn], guess[drawn], classes)
        return _macro_f1(table, np.bincount(truth[drawn], minlength=classes))

    rows = len(truth)
    return measured(f1_of(np.arange(rows)), rows, bootstrap(f1_of, rows, seed), "bootstrap")


def _measured_auc(positive: Bools, score: Floats, seed: int) -> dict[str, Any]:
    rows = len(score)
    interval = bootstrap(lambda drawn: roc_auc(positive[drawn], score[drawn]), rows, seed)
    return measured(roc_auc(positive, score), rows, interval, "bootstrap")


def _two_by_two(rows: int, hits: Ints, predicted: Ints, support: Ints) -> list[list[list[int]]]:
    """Return [[true negatives, false positives], [false negatives, hits]] of each label."""
    return [
        [[int(rows - guessed - real + hit), int(guessed - hit)], [int(real - hit), int(hit)]]
        for hit, guessed, real in zip(hits, predicted, support, strict=True)
    ]


def evaluate_labels(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, class_labels: Sequence[str], seed: int
) -> dict[str, Any]:
    """Evaluate a classifier that says yes or no to each of several labels, all shape (rows, labels).

    `accuracy` is the share of right single answers, `exact_match` that of rows without any mistake.
    Rows stay together when resampled, as their answers depend on each other.
    """
    p = np.asarray(y_pred, np.float64).reshape(len(np.asarray(y_pred)), -1)
    truth, guess = np.asarray(y_true).reshape(p.shape) > 0.5, p > 0.5
    rows, count = p.shape
    sound = np.isfinite(p).all(axis=1)
    right = (truth == guess) & sound[:, None]
    confidence = np.where(guess, p, 1 - p)
    calibrated = calibration(confidence.reshape(-1), right.reshape(-1))
    hits, predicted, support = (truth & guess).sum(axis=0), guess.sum(axis=0), truth.sum(axis=0)
    labels = _named(class_labels, count)
    return {
        "rows": rows,
        "nonfinite_rows": int((~sound).sum()),
        "metrics": {
            "accuracy": _measured_mean(right.mean(axis=1), seed),
            "exact_match": _measured_share(right.all(axis=1)),
            "log_loss": _measured_mean(_mean_label_losses(truth, p), seed),
            "f1_macro": _measured_label_f1(truth, guess, seed),
            "ece": _measured_ece(calibrated, rows),
        },
        "class_labels": labels,
        "per_class": [
            {**entry, "roc_auc": finite(roc_auc(truth[:, k], p[:, k]))}
            for k, entry in enumerate(_per_class(hits, predicted, support, labels))
        ],
        "confusion_per_label": _two_by_two(rows, hits, predicted, support),
        "calibration": calibrated,
    }


def _mean_label_losses(truth: Bools, p: Floats) -> Floats:
    """Return each row's binary cross-entropy, averaged over its labels, shape (rows,)."""
    clipped = np.clip(p, TINY, 1 - TINY)
    losses: Floats = -np.where(truth, np.log(clipped), np.log1p(-clipped)).mean(axis=1)
    return losses


def _measured_label_f1(truth: Bools, guess: Bools, seed: int) -> dict[str, Any]:
    """Measure F1 averaged over the labels that occur, in truth or among predictions."""

    def f1_of(drawn: Rows) -> float:
        hits = (truth[drawn] & guess[drawn]).sum(axis=0)
        size = truth[drawn].sum(axis=0) + guess[drawn].sum(axis=0)
        return float(np.mean(2 * hits[size > 0] / size[size > 0])) if (size > 0).any() else math.nan

    rows = len(truth)
    return measured(f1_of(np.arange(rows)), rows, bootstrap(f1_of, rows, seed), "bootstrap")
