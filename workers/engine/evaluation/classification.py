"""Evaluates classifiers with one label per row (binary, multiclass) or several (multilabel)."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from jobs.messages.reports.base import MetricValue
from jobs.messages.reports.evaluation import (
    Calibration,
    CalibrationBin,
    ClassEvaluation,
    ClassScores,
    LabelEvaluation,
)
from workers.engine.arrays import Array, Bools, Floats, Ints
from workers.engine.evaluation.intervals import (
    Counts,
    RowIndices,
    bootstrap,
    bootstrap_groups,
    metric_entry,
    wilson,
)
from workers.engine.evaluation.roc import RocCurve, auc_entry, roc_auc, roc_curve
from workers.engine.evaluation.weighting import Weights, column_sums, mean, of_rows
from workers.engine.report import finite_or_none

EPSILON = 1e-7
"""Probabilities are clipped to this distance from 0 and 1 in a log loss, as in Keras."""

BINS = 10
"""Number of bins of the confidence in the calibration."""


def probabilities(y_pred: npt.ArrayLike) -> Floats:
    """Convert a classifier's output to one column per class, with rows that sum to 1.

    Args:
        y_pred: class 1's probability, (rows,) or (rows, 1), or one per class, (rows, classes).

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
    """Return each row's negative log probability for its true class, (rows,)."""
    p = probabilities(y_pred)
    truth = np.asarray(y_true).reshape(-1).astype(np.int64)
    return -np.log(np.clip(p[np.arange(len(p)), truth], EPSILON, 1.0))


def _confusion(truth: Ints, guess: Ints, classes: int, weights: Weights = None) -> Array:
    """Count (true, predicted) pairs, or add their weights. Rows without a predicted class are left out."""
    has_class = guess >= 0
    pairs = truth[has_class] * classes + guess[has_class]
    flat = np.bincount(pairs, of_rows(weights, has_class), minlength=classes * classes)
    return flat.reshape(classes, classes)


def _macro_f1(hits: Array, predicted: Array, support: Array) -> float:
    """Return F1 averaged over the classes or labels that occur among the true or predicted ones.

    Args:
        hits: how often each is predicted correctly, or these rows' weight, (classes,).
        predicted: how often each is predicted, (classes,).
        support: how often each is true, (classes,).
    """
    size = predicted + support
    occurs = size > 0
    return float(np.mean(2 * hits[occurs] / size[occurs])) if occurs.any() else math.nan


def _per_class(
    hits: Array, predicted: Array, support: Array, labels: Sequence[str], rows: Ints
) -> list[ClassScores]:
    """Return each class's scores; for the arguments see `_macro_f1`, `rows` are each class's rows."""

    def ratio(a: float, b: float) -> float | None:
        return a / b if b else None

    return [
        ClassScores(
            label=label,
            precision=ratio(float(hit), float(guessed)),
            recall=ratio(float(hit), float(real)),
            f1=ratio(2 * float(hit), float(guessed + real)),
            support=int(count),
        )
        for label, hit, guessed, real, count in zip(labels, hits, predicted, support, rows, strict=True)
    ]


def calibration(confidence: Floats, correct: Bools, weights: Weights = None) -> Calibration:
    """Compare confidence with accuracy in equally wide bins.

    Source: Guo et al. 2017, On Calibration of Modern Neural Networks, section 2.

    Args:
        confidence: the predicted class's probability, (rows,).
        correct: whether the prediction is correct, (rows,).
        weights: row weights, (rows,); None if each counts once.

    Returns:
        `ece`: the expected calibration error, which is the mean absolute gap weighted by rows; `bins`: the
        bins that contain rows.
    """
    if confidence.size == 0 or not np.isfinite(confidence).all():
        return Calibration(ece=None)
    # A confidence of exactly 1 belongs to the last bin
    index = np.minimum((confidence * BINS).astype(int), BINS - 1)
    bins = []
    for number in np.unique(index if weights is None else index[weights > 0]):
        inside = index == number
        weights_inside = of_rows(weights, inside)
        bins.append(
            CalibrationBin(
                low=number / BINS,
                high=(number + 1) / BINS,
                rows=int(inside.sum()),
                share=None
                if weights_inside is None or weights is None
                else float(weights_inside.sum() / weights.sum()),
                confidence=mean(confidence[inside], weights_inside),
                accuracy=mean(correct[inside], weights_inside),
            )
        )
    if weights is None:
        ece = sum(b.rows * abs(b.confidence - b.accuracy) for b in bins) / confidence.size
    else:
        ece = sum((b.share or 0.0) * abs(b.confidence - b.accuracy) for b in bins)
    return Calibration(ece=float(ece), bins=tuple(bins))


def class_names(labels: Sequence[str], classes: int) -> list[str]:
    """Return the labels as class names, or the class numbers if there is not one label for each."""
    return [str(label) for label in labels] if len(labels) == classes else [str(i) for i in range(classes)]


def _mean_entry(values: Array, seed: int, weights: Weights) -> MetricValue:
    """Return a mean over rows, (rows,)."""
    rows = len(values)
    interval = bootstrap(lambda drawn: mean(values[drawn], of_rows(weights, drawn)), rows, seed)
    return metric_entry(mean(values, weights), rows, interval, "bootstrap")


def _share_entry(right: Bools, seed: int, weights: Weights) -> MetricValue:
    """Return the share of correct rows, (rows,)."""
    # The interval of a proportion needs rows that count once.
    if weights is not None:
        return _mean_entry(right, seed, weights)
    rows = len(right)
    return metric_entry(float(right.mean()), rows, wilson(int(right.sum()), rows), "wilson")


def _ece_entry(calibrated: Calibration, rows: int) -> MetricValue:
    return metric_entry(math.nan if calibrated.ece is None else calibrated.ece, rows)


def evaluate_classes(
    task: Literal["binary", "multiclass"],
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    class_labels: Sequence[str],
    seed: int,
    weights: Weights = None,
) -> ClassEvaluation:
    """Evaluate a classifier that predicts one class per row. The confusion matrix counts each row once.

    Args:
        task: the prediction task.
        y_true: class numbers, shape (rows,) or (rows, 1).
        y_pred: probabilities, see `probabilities`.
        class_labels: one name per class, or empty.
        seed: for the bootstrap.
        weights: row weights, (rows,); None if each counts once.
    """
    truth = np.asarray(y_true).reshape(-1).astype(np.int64)
    p, guess = probabilities(y_pred), predicted_classes(y_pred)
    rows, classes = p.shape
    right = truth == guess
    confusion, class_rows = _confusion(truth, guess, classes), np.bincount(truth, minlength=classes)
    table = _confusion(truth, guess, classes, weights)
    support = np.bincount(truth, weights, minlength=classes)
    labels = class_names(class_labels, classes)
    calibrated = calibration(p.max(axis=1), right, weights)
    metrics = {
        "accuracy": _share_entry(right, seed, weights),
        "log_loss": _mean_entry(row_losses(truth, p), seed, weights),
        "f1_macro": _macro_f1_entry(truth, guess, classes, seed, weights),
        "ece": _ece_entry(calibrated, rows),
    }
    curve = RocCurve()
    if classes == 2:
        positive, score = truth == 1, p[:, 1]
        metrics["roc_auc"] = auc_entry(positive, score, seed, weights)
        if metrics["roc_auc"].value is not None:
            curve = roc_curve(positive, score, weights)
    return ClassEvaluation(
        task=task,
        rows=rows,
        nonfinite_rows=int((guess < 0).sum()),
        metrics=metrics,
        class_labels=tuple(labels),
        per_class=tuple(_per_class(np.diag(table), table.sum(axis=0), support, labels, class_rows)),
        confusion=confusion.tolist(),
        calibration=calibrated,
        roc_curve=curve.points,
        roc_thresholds=curve.thresholds,
    )


def macro_f1_of_classes(truth: Ints, guess: Ints, classes: int, weights: Weights = None) -> float:
    """Return macro F1 for class numbers, (rows,); see `predicted_classes`."""
    table = _confusion(truth, guess, classes, weights)
    # Counted from `truth`: the table lacks rows without a predicted class.
    support = np.bincount(truth, weights, minlength=classes)
    return _macro_f1(np.diag(table), table.sum(axis=0), support)


def macro_f1_of_labels(truth: Bools, guess: Bools, weights: Weights = None) -> float:
    """Return macro F1 for labels, (rows, labels)."""
    return _macro_f1(*(column_sums(flags, weights) for flags in (truth & guess, guess, truth)))


def _macro_f1_entry(truth: Ints, guess: Ints, classes: int, seed: int, weights: Weights) -> MetricValue:
    if weights is not None:

        def f1_of_rows(drawn: RowIndices) -> float:
            return macro_f1_of_classes(truth[drawn], guess[drawn], classes, weights[drawn])

        interval = bootstrap(f1_of_rows, len(truth), seed)
        value = macro_f1_of_classes(truth, guess, classes, weights)
        return metric_entry(value, len(truth), interval, "bootstrap")

    def f1_of(pairs: Counts) -> float:
        table = pairs[:, 1:]
        return _macro_f1(np.diag(table), table.sum(axis=0), pairs.sum(axis=1))

    # The first column has the rows without a predicted class, whose `guess` is -1.
    flat = np.bincount(truth * (classes + 1) + guess + 1, minlength=classes * (classes + 1))
    pairs = flat.reshape(classes, classes + 1)
    return metric_entry(f1_of(pairs), len(truth), bootstrap_groups(f1_of, pairs, seed), "bootstrap")


def _two_by_two(
    rows: int, hits: Ints, predicted: Ints, support: Ints
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return [[true negatives, false positives], [false negatives, true positives]] for each label."""
    return [
        ((int(rows - guessed - real + hit), int(guessed - hit)), (int(real - hit), int(hit)))
        for hit, guessed, real in zip(hits, predicted, support, strict=True)
    ]


def evaluate_labels(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    class_labels: Sequence[str],
    seed: int,
    weights: Weights = None,
) -> LabelEvaluation:
    """Evaluate a multilabel classifier. Each label's confusion counts each row once.

    `accuracy` is the share of correct labels, `exact_match` the share of rows with all labels correct.

    Args:
        y_true: 0 or 1, (rows, labels).
        y_pred: probabilities, (rows, labels).
        class_labels: one name per label, or empty.
        seed: for the bootstrap.
        weights: row weights, (rows,); None if each counts once.
    """
    p = np.asarray(y_pred, np.float64).reshape(len(np.asarray(y_pred)), -1)
    truth, guess = np.asarray(y_true).reshape(p.shape) > 0.5, p > 0.5
    rows, count = p.shape
    is_finite = np.isfinite(p).all(axis=1)
    right = (truth == guess) & is_finite[:, None]
    confidence = np.where(guess, p, 1 - p)
    of_each_label = None if weights is None else np.repeat(weights, count)
    calibrated = calibration(confidence.reshape(-1), right.reshape(-1), of_each_label)
    hits, predicted, support = (truth & guess).sum(axis=0), guess.sum(axis=0), truth.sum(axis=0)
    labels = class_names(class_labels, count)
    weighed = [column_sums(flags, weights) for flags in (truth & guess, guess, truth)]
    per_label = _per_class(weighed[0], weighed[1], weighed[2], labels, support)
    return LabelEvaluation(
        task="multilabel",
        rows=rows,
        nonfinite_rows=int((~is_finite).sum()),
        metrics={
            # Averaged per row first: the bootstrap draws whole rows, whose labels depend on each other.
            "accuracy": _mean_entry(right.mean(axis=1), seed, weights),
            "exact_match": _share_entry(right.all(axis=1), seed, weights),
            "log_loss": _mean_entry(mean_label_losses(truth, p), seed, weights),
            "f1_macro": _macro_f1_entry_of_labels(truth, guess, seed, weights),
            "ece": _ece_entry(calibrated, rows),
        },
        class_labels=tuple(labels),
        per_class=tuple(
            entry.model_copy(update={"roc_auc": finite_or_none(roc_auc(truth[:, k], p[:, k], weights))})
            for k, entry in enumerate(per_label)
        ),
        confusion_per_label=tuple(_two_by_two(rows, hits, predicted, support)),
        calibration=calibrated,
    )


def mean_label_losses(truth: Bools, p: Floats) -> Floats:
    """Return each row's binary cross-entropy, averaged over its labels, (rows,)."""
    clipped = np.clip(p, EPSILON, 1 - EPSILON)
    losses: Floats = -np.where(truth, np.log(clipped), np.log1p(-clipped)).mean(axis=1)
    return losses


def _macro_f1_entry_of_labels(truth: Bools, guess: Bools, seed: int, weights: Weights) -> MetricValue:
    def f1_of(drawn: RowIndices) -> float:
        return macro_f1_of_labels(truth[drawn], guess[drawn], of_rows(weights, drawn))

    rows = len(truth)
    return metric_entry(f1_of(np.arange(rows)), rows, bootstrap(f1_of, rows, seed), "bootstrap")
