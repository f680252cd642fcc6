"""The choices for each table column: how its values become numbers, with the proposal and its reason."""

from collections.abc import Collection
from typing import NamedTuple

from jobs.spec.data.column_plans import ColumnPlan, plan_column
from jobs.spec.data.columns import ENCODINGS, NUMERIC, ColumnOptions, ColumnType, Encode
from jobs.spec.data.features import (
    DEFAULT_BUCKETS,
    DEFAULT_LENGTH,
    MAX_NGRAMS,
    MAX_ONE_HOT,
    MAX_WORDS,
    MIN_ROWS,
    SIZED,
)
from jobs.spec.data.profile import Column, Profile
from jobs.spec.problems import escaped
from webapp.forms.experiments.experiment.description import Option

ENCODE_LABELS: dict[Encode, str] = {
    "one_hot": "a position for each value",
    "embedding": "a vector that the model learns",
    "hash": "a vector by hash value",
    "words": "words and pairs of words",
    "characters": "parts of words",
    "words_and_characters": "words, pairs and parts of words",
    "tokens": "words in their order",
    "date": "parts of the date",
    "pixels": "the pixels",
}
AS_NUMBER = "the number itself"
AS_TEMPLATE = "as the template needs"


class ColumnChoice(NamedTuple):
    """One column with its choices.

    Attributes:
        column: the column.
        pointer: JSON pointer to its options in the spec.
        proposal: what happens without a choice.
        reason: why this is proposed.
        encode: the encoding without a choice, empty for numbers.
        encodings: what may be chosen; empty if there is nothing to choose.
        has_impute: whether a missing value is replaced by a number.
        has_indicator: whether a position may show that a value is missing.
        sizes: the encodings that have a size, separated by spaces.
        size: the number of words or n-grams without a choice.
        length: how many words in a text are read in order without a choice.
    """

    column: Column
    pointer: str
    proposal: str
    reason: str
    encode: str
    encodings: tuple[Option, ...]
    has_impute: bool
    has_indicator: bool
    sizes: str
    size: int
    length: int = DEFAULT_LENGTH
    buckets: int = DEFAULT_BUCKETS


def column_choices(
    profile: Profile, chosen: Collection[str], target: str, text: str = ""
) -> list[ColumnChoice]:
    """Return the choices for the columns that are features.

    Args:
        profile: a table's profile.
        chosen: the features' names; the profile's features if empty.
        target: the experiment's target; the profile's target if empty.
        text: a name or a part, in any case.
    """
    predicted = target or profile.target
    features = frozenset(chosen or (*profile.features, profile.target))
    part_of_name = text.strip().lower()
    return [
        choice_of(column)
        for column in profile.columns
        if column.name in features and column.name != predicted and part_of_name in column.name.lower()
    ]


def choice_of(column: Column) -> ColumnChoice:
    """Return the choices for one column."""
    plan = plan_column(column, ColumnOptions())
    kind = column.type or "number"
    return ColumnChoice(
        column=column,
        pointer=f"/data/preprocessing/{escaped(column.name)}",
        proposal=_proposal(plan),
        reason=_reason(column, plan),
        encode=plan.encode or "",
        encodings=_encodings(kind, plan.encode),
        has_impute=kind in NUMERIC,
        has_indicator=kind in NUMERIC or kind == "date",
        sizes=" ".join(encoding for encoding in SIZED if encoding in ENCODINGS.get(kind, ())),
        size=_proposed_size(column, plan),
        length=plan_column(column, ColumnOptions(), "tokens").length,
    )


def _encodings(kind: ColumnType, proposed: Encode | None) -> tuple[Option, ...]:
    offered = ENCODINGS.get(kind, ())
    if len(offered) < 2:
        return ()
    if kind == "text":
        # The proposal is the choice of the template, and of `data.texts`.
        first, proposed = AS_TEMPLATE, None
    else:
        first = AS_NUMBER if proposed is None else ENCODE_LABELS[proposed]
    others = (
        Option(f'"{encoding}"', ENCODE_LABELS[encoding]) for encoding in offered if encoding != proposed
    )
    return (Option("", f"{first} (proposed)"), *others)


def _proposed_size(column: Column, plan: ColumnPlan) -> int:
    if column.type == "text":
        return plan.size
    return min(column.frequent or 0, MAX_WORDS)


def _proposal(plan: ColumnPlan) -> str:
    shows = ", and a position that shows whether it is missing" if plan.indicator else ""
    match plan.encode:
        case None:
            return f"The number, or the median of the training rows if it is missing{shows}."
        case "one_hot":
            return f"{plan.size:,} positions: one for each value, for others, and for a missing one."
        case "embedding":
            return f"A vector for each of {plan.size - 2:,} values, which the model learns."
        case "hash":
            return f"A vector for each of {plan.size - 2:,} hash values, which the model learns."
        case "words" | "characters" | "words_and_characters" | "tokens":
            return (
                "By the field Texts, or else as the template needs: the weights of the "
                f"{plan.size:,} most frequent words and pairs of words; for the bag of n-grams, of parts of "
                "words too; for the transformer, the words in their order."
            )
        case "date":
            return (
                f"Days since the last training date, and the place in the year, the week and the day{shows}."
            )
        case "pixels":
            return f"The {plan.size:,} values of its pixels."


def _reason(column: Column, plan: ColumnPlan) -> str:
    distinct = column.distinct or 0
    match plan.encode:
        case "one_hot":
            return f"It has {distinct:,} different values, at most {MAX_ONE_HOT}."
        case "embedding":
            return f"It has {distinct:,} different values, more than {MAX_ONE_HOT}."
        case "hash":
            return f"None of its {distinct:,} values is in {MIN_ROWS} rows or more."
        case "words" | "characters" | "words_and_characters" | "tokens":
            return f"Words that several texts have are used: as n-grams, at most {MAX_NGRAMS:,}."
        case _ if column.missing:
            return f"{column.missing:,} rows have no value, which may have a meaning."
        case _:
            return "No row of the file lacks a value."
