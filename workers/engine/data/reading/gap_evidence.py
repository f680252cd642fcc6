"""Decides which words of a category or a text are missing values, and offers the other decision.

`None` and `NA` are missing values in one file, and categories in another: a house without a garage, Namibia.
The default follows from the column. A person sees the words and their rows, and may decide otherwise.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.gap_words import MARKERS, MOST_NAMED, is_gap, named_words
from jobs.spec.data.offers import Offer
from workers.engine.data.reading.column_texts import ColumnTexts

CODE = re.compile(r"[A-Z]{2}")
FEWEST_CODES = 3
CODES_AMONG_VALUES = 0.8
"""NA among so many different codes of two letters is a code."""


class DecidedGaps(NamedTuple):
    """A column whose missing values are empty texts.

    Attributes:
        texts: the column.
        words: the words that were missing values.
        offers: the words, and the other decision about them.
    """

    texts: ColumnTexts
    words: tuple[str, ...]
    offers: tuple[Offer, ...] = ()


def decide_gaps(name: str, texts: ColumnTexts, *, may_be_gaps: bool, is_target: bool) -> DecidedGaps:
    """Return a category or text column without the words that are missing values.

    A word of programs such as NA or NaN is a missing value, unless

    - the file's format has missing values of its own, or the column has empty cells too,
    - it is None, which is also an English word,
    - it is NA among other codes of two letters,
    - the column is the target: rows must not be left out because of a class's name.

    Args:
        name: the column's name.
        texts: its texts.
        may_be_gaps: whether the file's format has no other way to write a missing value than as a text.
        is_target: whether it is the target.
    """
    counts = texts.gap_words()
    if not counts:
        return DecidedGaps(texts, ())
    has_codes = _has_codes(texts)
    if has_codes:
        # North Dakota is no word for a missing value.
        counts = {
            word: rows
            for word, rows in counts.items()
            if is_gap(word, "booleans") or not CODE.fullmatch(word)
        }
    gaps: tuple[str, ...] = ()
    if may_be_gaps and not _has_values(texts):
        gaps = tuple(word for word in counts if is_gap(word, "booleans"))
    elif may_be_gaps and not is_target and not texts.has_empty:
        gaps = tuple(
            word for word in counts if is_gap(word, "words") and not (has_codes and CODE.fullmatch(word))
        )
    offers = _offers(name, counts, gaps, texts.rows, is_target=is_target)
    return DecidedGaps(texts.without(gaps), gaps, offers)


def decide_gaps_of_booleans(name: str, texts: ColumnTexts, *, is_target: bool) -> DecidedGaps:
    """Return a column of true and false with the words that are missing values; see `decide_gaps`."""
    counts = {word: rows for word, rows in texts.gap_words().items() if is_gap(word, "booleans")}
    offers = _offers(name, counts, tuple(counts), texts.rows, is_target=is_target)
    # With one more value it is no boolean.
    change = ColumnRequest(name=name, type="category", gap_words=())
    changed = tuple(offer.model_copy(update={"change": change}) for offer in offers)
    return DecidedGaps(texts, tuple(counts), changed)


def _has_values(texts: ColumnTexts) -> bool:
    return bool(texts.first(lambda text: not is_gap(text)))


def _has_codes(texts: ColumnTexts) -> bool:
    """Return whether most values are different codes of two letters."""
    values = texts.first(lambda text: not is_gap(text) or CODE.fullmatch(text) is not None)
    others = {*values} - {*MARKERS}
    codes = sum(CODE.fullmatch(text) is not None for text in others)
    return codes >= FEWEST_CODES and codes >= CODES_AMONG_VALUES * len(others)


def _offers(
    name: str, counts: Mapping[str, int], gaps: Sequence[str], rows: int, *, is_target: bool
) -> tuple[Offer, ...]:
    offers = []
    subject = f"{'Target' if is_target else 'Column'} {name!r}"
    if gaps:
        offers.append(
            Offer(
                finding=f"{subject}: {named_words(gaps, counts)} of {rows:,} rows counts as missing.",
                label=f"Keep {_listed(gaps)} as {'a class' if is_target else 'a value'}",
                change=ColumnRequest(name=name, gap_words=()),
            )
        )
    if kept := [word for word in counts if word not in gaps]:
        count = sum(counts[word] for word in kept)
        take = f"Take {_listed(kept)} as missing"
        leave_out = f"Leave out the {f'{count:,} rows' if count > 1 else 'row'} with {_listed(kept)}"
        offers.append(
            Offer(
                finding=f"{subject}: {named_words(kept, counts)} of {rows:,} rows is read as "
                f"{'a class' if is_target else 'a value'}, not as missing.",
                label=leave_out if is_target else take,
                change=ColumnRequest(name=name, gap_words=(*gaps, *kept)),
            )
        )
    return tuple(offers)


def _listed(words: Sequence[str]) -> str:
    more = len(words) - MOST_NAMED
    return ", ".join(repr(word) for word in words[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
