"""Fits a pipeline to the training rows."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from jobs.spec.data.column_plans import ColumnPlan
from jobs.spec.data.features import (
    FIRST_WORD,
    MIN_ROWS,
    DateFeature,
    Feature,
    Features,
    HashFeature,
    ImageFeature,
    IndexFeature,
    NgramFeature,
    Ngrams,
    NumberFeature,
    OneHotFeature,
    TokenFeature,
    TwoNgramsFeature,
)
from jobs.spec.data.writings import READERS
from workers.features.date_texts import DATE
from workers.features.ngrams import Analyzer, choose, frequencies, occurrences, vocabulary
from workers.features.values import Array, BadValue, from_stored, words_from_stored

PART_ROWS = 65_536
"""Words and texts of so many rows are in memory at once."""

Step = Callable[[], None]
"""Called again and again while the pipeline is fitted, to announce that the work continues."""


class Column(Protocol):
    """A column's values, which may be in a file."""

    def __getitem__(self, rows: Any, /) -> Array:
        """Return the values in some rows."""


def fit(
    plans: Sequence[ColumnPlan],
    columns: Mapping[str, Column],
    rows: Array,
    before_each: Step = lambda: None,
) -> Features:
    """Fit a pipeline, one column after the other.

    Args:
        plans: how each column becomes numbers, in the order of the input.
        columns: stored columns by name, (all rows,) each.
        rows: the training rows' numbers, (rows,). No other row affects the pipeline.
        before_each: called before each column, each part that is read by itself, and each text.
    """
    fitted = []
    for plan in plans:
        before_each()
        feature = _fit(plan, columns[plan.column], rows, before_each)
        if plan.encode != "pixels":
            # The texts of requests are read by the same rules as the data.
            names = ("number_format", "gap_words", "misfit_words")
            rules = {name: getattr(plan, name) for name in names}
            feature = feature.model_copy(update=rules)
        fitted.append(feature)
    return Features(columns=tuple(fitted))


def _fit(plan: ColumnPlan, stored: Column, rows: Array, before_each: Step) -> Feature:
    match plan.encode:
        case None:
            return _fit_number(plan, from_stored(stored[rows], plan.type, plan.column))
        case "date":
            return _fit_date(plan, from_stored(stored[rows], "date", plan.column))
        case "one_hot":
            words = _frequent(plan, stored, rows, before_each, at_least=1)
            return OneHotFeature(
                column=plan.column, type=plan.type, writing=plan.writing, words=words, size=plan.size
            )
        case "embedding":
            words = _frequent(plan, stored, rows, before_each, at_least=MIN_ROWS)
            return IndexFeature(
                column=plan.column, type=plan.type, writing=plan.writing, words=words, size=plan.size
            )
        case "hash":
            return HashFeature(column=plan.column, type=plan.type, writing=plan.writing, size=plan.size)
        case "words" | "characters":
            part = _fit_ngrams(plan, stored, rows, before_each, plan.encode, plan.size)
            return NgramFeature(column=plan.column, type=plan.type, **dict(part))
        case "words_and_characters":
            return _fit_two_ngrams(plan, stored, rows, before_each)
        case "tokens":
            words = vocabulary(_texts(plan, stored, rows, before_each), plan.size - FIRST_WORD)
            return TokenFeature(
                column=plan.column, type=plan.type, words=words, size=plan.size, length=plan.length
            )
        case "pixels":
            return _fit_image(plan)


def _parts(stored: Column, rows: Array, before_each: Step) -> Iterator[Array]:
    """Yield a column's values, some rows at once."""
    for start in range(0, len(rows), PART_ROWS):
        before_each()
        yield stored[rows[start : start + PART_ROWS]]


def _texts(plan: ColumnPlan, stored: Column, rows: Array, before_each: Step) -> Iterator[str]:
    for part in _parts(stored, rows, before_each):
        for text in from_stored(part, "text", plan.column).tolist():
            # A part of long texts may take minutes.
            before_each()
            yield text


def _fit_image(plan: ColumnPlan) -> ImageFeature:
    if plan.image is None:
        raise ValueError(f"the size of the images in column {plan.column!r} is unknown")
    return ImageFeature(column=plan.column, **plan.image.model_dump())


def _fit_number(plan: ColumnPlan, numbers: Array) -> NumberFeature:
    present = numbers[~np.isnan(numbers)]
    fill = 0.0
    if plan.impute == "constant":
        fill = plan.constant
    elif len(present):
        fill = float(np.median(present) if plan.impute == "median" else present.mean())
    return NumberFeature(column=plan.column, type=plan.type, fill=fill, indicator=plan.indicator)


def _fit_date(plan: ColumnPlan, dates: Array) -> DateFeature:
    present = np.sort(dates[~np.isnat(dates)])
    if not len(present):
        present = np.asarray(["1970-01-01"], DATE)
    return DateFeature(
        column=plan.column,
        type=plan.type,
        origin=str(present[-1]),
        fill=str(present[len(present) // 2]),
        indicator=plan.indicator,
        date_format=plan.date_format,
    )


def check_types(features: Features, plans: Sequence[ColumnPlan]) -> None:
    """Check that other data have no column of true and false, which are stored as numbers, for words.

    Raises:
        BadValue: they have one.
    """
    booleans = {plan.column for plan in plans if plan.type == "boolean"}
    for feature in features.columns:
        if feature.type == "category" and feature.column in booleans:
            raise BadValue(
                f"column {feature.column!r} takes words, and these data have true and false; choose the type "
                "category"
            )


def with_text_rules(features: Features, plans: Sequence[ColumnPlan]) -> Features:
    """Return an earlier model's pipeline that reads the texts of requests by the rules of other data.

    Args:
        features: the pipeline.
        plans: how the columns of the data become numbers.

    Raises:
        BadValue: see `check_types`.
    """
    check_types(features, plans)
    by_column = {plan.column: plan for plan in plans}
    columns = tuple(
        _with_rules(feature, by_column[feature.column]) if feature.column in by_column else feature
        for feature in features.columns
    )
    return features.model_copy(update={"columns": columns})


def _with_rules(feature: Feature, plan: ColumnPlan) -> Feature:
    if isinstance(feature, ImageFeature):
        return feature
    rules: dict[str, object] = {}
    # The words of texts, and the numbers that words become, stay as the model knows them.
    are_texts_known = feature.type == "text" or isinstance(feature, HashFeature)
    if plan.number_format is not None and not are_texts_known:
        rules["number_format"] = plan.number_format
    if plan.gap_words is not None:
        # The earlier words stay missing, in these data too.
        rules["gap_words"] = tuple(dict.fromkeys((*(feature.gap_words or ()), *plan.gap_words)))
    if plan.misfit_words:
        rules["misfit_words"] = tuple(dict.fromkeys((*feature.misfit_words, *plan.misfit_words)))
    if isinstance(feature, DateFeature) and plan.encode == "date":
        rules["date_format"] = plan.date_format
    return feature.model_copy(update=rules)


def _frequent(
    plan: ColumnPlan, stored: Column, rows: Array, before_each: Step, *, at_least: int
) -> tuple[str, ...]:
    """Return a column's most frequent words, those in equally many rows in alphabetical order.

    If there are very many, the rarest so far are forgotten; see `ngrams.frequencies`.
    """
    counts = occurrences(
        words_from_stored(part, plan.type, plan.column).tolist() for part in _parts(stored, rows, before_each)
    )
    values = _of_values(counts, READERS[plan.writing])
    often = sorted((-number, word) for word, number in values.items() if number >= at_least)
    return tuple(word for _, word in often[: plan.size - FIRST_WORD])


def _of_values(counts: Counter[str], read: Callable[[str], str]) -> dict[str, int]:
    """Return in how many rows each value is, by its most frequent writing, without the missing one."""
    writings: dict[str, str] = {"": ""}
    values: Counter[str] = Counter()
    for word, number in counts.most_common():
        values[writings.setdefault(read(word), word)] += number
    return {word: number for word, number in values.items() if word}


def _fit_two_ngrams(plan: ColumnPlan, stored: Column, rows: Array, before_each: Step) -> TwoNgramsFeature:
    return TwoNgramsFeature(
        column=plan.column,
        type=plan.type,
        words=_fit_ngrams(plan, stored, rows, before_each, "words", plan.words),
        characters=_fit_ngrams(plan, stored, rows, before_each, "characters", plan.size - plan.words),
    )


def _fit_ngrams(
    plan: ColumnPlan, stored: Column, rows: Array, before_each: Step, analyzer: Analyzer, size: int
) -> Ngrams:
    texts = _texts(plan, stored, rows, before_each)
    chosen = choose(frequencies(texts, analyzer), size, len(rows))
    return Ngrams(analyzer=analyzer, ngrams=tuple(chosen), weights=tuple(chosen.values()), size=size)
