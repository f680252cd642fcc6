"""Fits a pipeline to the rows of the training part."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from jobs.contracts.features import (
    FIRST_WORD,
    MIN_ROWS,
    ColumnPlan,
    DateFeature,
    Feature,
    Features,
    HashFeature,
    IndexFeature,
    NgramFeature,
    NumberFeature,
    OneHotFeature,
)
from workers.features.ngrams import Analyzer, choose, frequencies
from workers.features.values import DATE, Array, as_words, from_stored


def fit(plans: Sequence[ColumnPlan], columns: Mapping[str, Array], rows: Array) -> Features:
    """Fit a pipeline.

    Args:
        plans: how each column becomes numbers, in the order of the input.
        columns: stored columns by name, (all rows,) each.
        rows: numbers of the training rows, (rows,). No other row affects the pipeline.
    """
    return Features(columns=tuple(_fit(plan, columns[plan.column][rows]) for plan in plans))


def _fit(plan: ColumnPlan, stored: Array) -> Feature:
    match plan.encode:
        case None:
            return _fit_number(plan, from_stored(stored, plan.type, plan.column))
        case "date":
            return _fit_date(plan, from_stored(stored, "date", plan.column))
        case "one_hot":
            words = _frequent(plan, stored, at_least=1)
            return OneHotFeature(column=plan.column, type=plan.type, words=words, size=plan.size)
        case "embedding":
            words = _frequent(plan, stored, at_least=MIN_ROWS)
            return IndexFeature(column=plan.column, type=plan.type, words=words, size=plan.size)
        case "hash":
            return HashFeature(column=plan.column, type=plan.type, size=plan.size)
        case "words" | "characters":
            return _fit_ngrams(plan, plan.encode, from_stored(stored, "text", plan.column))


def _fit_number(plan: ColumnPlan, numbers: Array) -> NumberFeature:
    known = numbers[~np.isnan(numbers)]
    fill = 0.0
    if plan.impute == "constant":
        fill = plan.constant
    elif len(known):
        fill = float(np.median(known) if plan.impute == "median" else known.mean())
    return NumberFeature(column=plan.column, type=plan.type, fill=fill, indicator=plan.indicator)


def _fit_date(plan: ColumnPlan, dates: Array) -> DateFeature:
    known = np.sort(dates[~np.isnat(dates)])
    if not len(known):
        known = np.asarray(["1970-01-01"], DATE)
    return DateFeature(
        column=plan.column,
        type=plan.type,
        origin=str(known[-1]),
        fill=str(known[len(known) // 2]),
        indicator=plan.indicator,
    )


def _frequent(plan: ColumnPlan, stored: Array, *, at_least: int) -> tuple[str, ...]:
    """Return the most frequent words of a column, those in equally many rows in alphabetical order."""
    # As the pipeline reads them: two whole numbers above 2^53 may be one float.
    found = Counter(as_words(from_stored(stored, plan.type, plan.column)).tolist())
    found.pop("", None)
    often = sorted((-rows, word) for word, rows in found.items() if rows >= at_least)
    return tuple(word for _, word in often[: plan.size - FIRST_WORD])


def _fit_ngrams(plan: ColumnPlan, analyzer: Analyzer, texts: Array) -> NgramFeature:
    chosen = choose(frequencies(texts.tolist(), analyzer), plan.size, len(texts))
    return NgramFeature(
        column=plan.column,
        type=plan.type,
        analyzer=analyzer,
        ngrams=tuple(chosen),
        weights=tuple(chosen.values()),
        size=plan.size,
    )
