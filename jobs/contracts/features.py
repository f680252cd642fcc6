"""The feature pipeline of a table: which positions of the model's input each column fills.

A pipeline is planned from the profile of a dataset version, so the shape of the input is known before
anything is read. It is fitted on the training part, saved in the model's file as `features.json`, and
executed by `workers.features` wherever rows become the input of a model.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, model_validator

from jobs.contracts.base import Frozen
from jobs.contracts.columns import ENCODINGS, NUMERIC, ColumnOptions, ColumnType, Encode, Float32, Impute
from jobs.contracts.profile import Column, InputBlock

MAX_ONE_HOT = 50
"""Categories with at most this many values get a position for each value, others an embedding."""
MIN_ROWS = 5
"""A value of an embedded category needs this many rows to have an index of its own."""
MAX_WORDS = 10_000
"""Maximum number of values of an embedded category with an index of their own."""
DEFAULT_BUCKETS = 512
MAX_NGRAMS = 1_000
"""Maximum number of n-grams of a text column, each of which is a position."""
DATE_POSITIONS = 7
"""Days since the last training date; sine and cosine of the day of the year, of the week, and of the time."""
MISSING, OTHER, FIRST_WORD = 0, 1, 2
"""Index of a missing category, of one without an index of its own, and of the first one that has an index."""
MAX_WEIGHT = 100.0
"""Above every inverse document frequency, which is at least 1 and grows with the logarithm of the rows."""


class ColumnPlan(NamedTuple):
    """How one column becomes numbers.

    Attributes:
        column: its name.
        type: of its values.
        encode: how words, texts or dates are encoded; None for numbers.
        impute: what replaces a missing number.
        constant: the replacement if `impute` is constant.
        size: one-hot values, indices or n-grams, the ones for missing and other values included.
        indicator: whether a position shows that the value is missing.
    """

    column: str
    type: ColumnType
    encode: Encode | None
    impute: Impute = "median"
    constant: float = 0.0
    size: int = 1
    indicator: bool = False

    @property
    def positions(self) -> int:
        """Return the number of positions of the input."""
        if self.is_embedded:
            return 1
        width = DATE_POSITIONS if self.encode == "date" else self.size
        return width + self.indicator

    @property
    def is_embedded(self) -> bool:
        """Return whether its position holds an index, which the model turns into a vector."""
        return self.encode in ("embedding", "hash")


def plan_columns(columns: Iterable[Column], options: Mapping[str, ColumnOptions]) -> tuple[ColumnPlan, ...]:
    """Return how the given columns become numbers.

    Args:
        columns: those with the role of a feature, in the order of the input.
        options: by name of the column.

    Raises:
        ValueError: an option does not fit the type of its column; the message names the column.
    """
    return tuple(plan_column(column, options.get(column.name, ColumnOptions())) for column in columns)


def plan_column(column: Column, options: ColumnOptions) -> ColumnPlan:
    """Return how one column becomes numbers.

    Raises:
        ValueError: an option does not fit the type of the column; the message names the column.
    """
    kind = column.type or "number"
    encode = options.encode or _default_encoding(column)
    if refusal := _refusal(column.name, kind, options):
        raise ValueError(refusal)
    plan = ColumnPlan(column.name, kind, encode)
    match encode:
        case "one_hot":
            return plan._replace(size=FIRST_WORD + (column.distinct or 0))
        case "embedding":
            return plan._replace(size=FIRST_WORD + min(column.frequent or 0, MAX_WORDS))
        case "hash":
            return plan._replace(size=FIRST_WORD + (options.buckets or DEFAULT_BUCKETS))
        case "words":
            return plan._replace(size=min(column.ngrams or MAX_NGRAMS, MAX_NGRAMS))
        case "characters":
            # The profile counts words, and parts of words are far more.
            return plan._replace(size=MAX_NGRAMS)
        case "date":
            return plan._replace(indicator=column.missing > 0)
        case _:
            return plan._replace(
                impute=options.impute or "median",
                constant=options.constant or 0.0,
                indicator=column.missing > 0,
            )


def _default_encoding(column: Column) -> Encode | None:
    if column.type == "category":
        if (column.distinct or 0) <= MAX_ONE_HOT:
            return "one_hot"
        # Without a value in several rows, no index of its own could be learnt.
        return "embedding" if column.frequent else "hash"
    return {"text": "words", "date": "date"}.get(column.type or "number")  # type: ignore[return-value]


def _refusal(name: str, kind: ColumnType, options: ColumnOptions) -> str | None:
    allowed = ENCODINGS.get(kind, ())
    if options.encode is not None and options.encode not in allowed:
        choice = ", ".join(allowed) or "none"
        return f"column {name!r} of type {kind} cannot be encoded as {options.encode}; there is {choice}"
    if options.impute is not None and kind not in NUMERIC:
        return f"column {name!r} of type {kind} has no {options.impute}; impute is for numbers"
    return None


def input_blocks(plans: Sequence[ColumnPlan]) -> tuple[InputBlock, ...]:
    """Return the positions that each column fills."""
    found, start = [], 0
    for plan in plans:
        size = plan.size if plan.is_embedded else 0
        block = InputBlock(
            column=plan.column, start=start, positions=plan.positions, kind=_kind(plan), size=size
        )
        found.append(block)
        start += plan.positions
    return tuple(found)


def _kind(plan: ColumnPlan) -> Literal["number", "plain", "index"]:
    if plan.is_embedded:
        return "index"
    # Standardizing a value that few rows have would make it many times larger than all others.
    return "number" if plan.encode in (None, "date") else "plain"


class _Fitted(Frozen):
    """One column of a fitted pipeline. Missing values are NaN, NaT or an empty text."""

    column: str = Field(max_length=500)
    type: ColumnType


def _is_date(text: str) -> str:
    datetime.fromisoformat(text)
    return text


IsoDate = Annotated[
    # As NumPy writes it: of other forms it reads some differently, such as 20260101 as a year.
    str,
    Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6})?$"),
    AfterValidator(_is_date),
]


class _Words(_Fitted):
    """A column whose words have positions or indices."""

    words: tuple[str, ...] = Field(fail_fast=True)
    size: int = Field(ge=FIRST_WORD)

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        if len(self.words) > self.size - FIRST_WORD:
            raise ValueError(f"words has {len(self.words)} entries, more than size {self.size} allows")
        return self


class NumberFeature(_Fitted):
    """A number, with `fill` for a missing one."""

    kind: Literal["number"] = "number"
    fill: Float32
    indicator: bool = Field(description="a further position is 1 if the value is missing")


class OneHotFeature(_Words):
    """A position for a missing value, one for other values, and one for each word. Spare positions stay 0."""

    kind: Literal["one_hot"] = "one_hot"


class IndexFeature(_Words):
    """The index of a word: 0 if it is missing, 1 for other words, then those of `words` in order."""

    kind: Literal["index"] = "index"


class HashFeature(_Fitted):
    """0 if the word is missing, else 2 + CRC-32 of its UTF-8 bytes modulo the number of buckets."""

    kind: Literal["hash"] = "hash"
    size: int = Field(ge=FIRST_WORD + 1)


class DateFeature(_Fitted):
    """Days since `origin`; sine and cosine of the day of the year, of the week, and of the time."""

    kind: Literal["date"] = "date"
    origin: IsoDate = Field(description="the latest date of the training part, ISO 8601")
    fill: IsoDate = Field(description="the date that replaces a missing one, ISO 8601")
    indicator: bool


class NgramFeature(_Fitted):
    """The weights (TF-IDF, of length 1) of the n-grams of a text."""

    kind: Literal["ngrams"] = "ngrams"
    analyzer: Literal["words", "characters"]
    ngrams: tuple[str, ...] = Field(fail_fast=True)
    weights: tuple[Annotated[float, Field(ge=1, le=MAX_WEIGHT)], ...] = Field(
        fail_fast=True, description="inverse document frequency of each n-gram"
    )
    size: int = Field(ge=1)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.weights) != len(self.ngrams) or len(self.ngrams) > self.size:
            raise ValueError(
                f"ngrams, weights and size differ: {len(self.ngrams)}, {len(self.weights)}, {self.size}"
            )
        return self


Feature = Annotated[
    NumberFeature | OneHotFeature | IndexFeature | HashFeature | DateFeature | NgramFeature,
    Field(discriminator="kind"),
]


class Features(Frozen):
    """A fitted pipeline: the content of `features.json`."""

    version: Literal[1] = 1
    columns: tuple[Feature, ...] = Field(min_length=1, max_length=20_000, fail_fast=True)

    @model_validator(mode="after")
    def _names_columns_once(self) -> Self:
        names = [feature.column for feature in self.columns]
        if len({*names}) < len(names):
            raise ValueError("columns names a column twice")
        return self

    @property
    def width(self) -> int:
        """Return the number of positions of the input."""
        return sum(map(positions_of, self.columns))


def positions_of(feature: Feature) -> int:
    """Return the number of positions that a fitted column fills."""
    match feature:
        case NumberFeature():
            return 1 + feature.indicator
        case DateFeature():
            return DATE_POSITIONS + feature.indicator
        case OneHotFeature() | NgramFeature():
            return feature.size
        case IndexFeature() | HashFeature():
            return 1
