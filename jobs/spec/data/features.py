"""Declares a table's feature pipeline: which positions in the model's input each column fills.

A pipeline is planned from a dataset version's profile, so the input's shape is known before
anything is read. It is fitted on the training part, saved in the model's file as `features.json`, and
executed by `workers.features` wherever rows become a model's input.
"""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from jobs.spec.base import Frozen
from jobs.spec.data.columns import (
    MAX_LENGTH,
    ColumnType,
    DateFormat,
    Encode,
    Float32,
)
from jobs.spec.data.images import Fit, ImageShape, Side
from jobs.spec.data.number_format import NumberFormat
from jobs.spec.data.writings import Writing
from jobs.spec.signature import InputWindow

MAX_ONE_HOT = 50
"""Categories with at most this many values get a position for each value, others an embedding."""

MIN_ROWS = 5
"""A value in an embedded category has its own index if at least this many rows have it."""

SIZED: tuple[Encode, ...] = ("embedding", "words", "characters", "words_and_characters", "tokens")
"""Encodings for which the number of words or n-grams may be chosen."""

MAX_WORDS = 10_000
"""The most values in an embedded category, or words in a text, that have their own index."""

DEFAULT_BUCKETS = 512

MAX_NGRAMS = 1_000
"""The most n-grams for a text column, each of which is a position."""

NGRAMS: tuple[Encode, ...] = ("words", "characters", "words_and_characters")
"""Encodings that turn texts into n-grams."""

DEFAULT_LENGTH = 128
"""The most words that are read from a text in their order, unless an experiment asks for more."""

DATE_POSITIONS = 7
"""Days since the last training date; sine and cosine of the day of the year, of the week, and of the time."""

MISSING, OTHER, FIRST_WORD = 0, 1, 2
"""The index for a missing category, for one without its own index, and for the first with its own."""

MAX_WEIGHT = 100.0
"""Above every inverse document frequency, which is at least 1 and grows with the row count's logarithm."""


class _Fitted(Frozen):
    """One column in a fitted pipeline. Missing values are NaN, NaT or an empty text."""

    column: str = Field(max_length=500)
    type: ColumnType
    number_format: NumberFormat | None = Field(
        default=None,
        exclude_if=lambda form: form is None,
        description="How texts are numbers. Without it, only numbers are taken.",
    )
    gap_words: tuple[str, ...] | None = Field(
        default=None,
        exclude_if=lambda words: words is None,
        description="Words that are missing values. Without it, the usual ones between numbers, else none.",
    )
    misfit_words: tuple[str, ...] = Field(
        default=(),
        exclude_if=lambda words: not words,
        description="Further words that are missing values, since they were so among the data.",
    )

    @model_validator(mode="after")
    def _has_single_values(self) -> Self:
        if self.type in ("image", "sequence"):
            raise ValueError(f"a column of type {self.type} cannot be encoded as {type(self).__name__}")
        return self


def _is_date(text: str) -> str:
    datetime.fromisoformat(text)
    return text


IsoDate = Annotated[
    # As NumPy writes it: of other forms it reads some differently, such as 20260101 as a year.
    str,
    Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6})?$"),
    AfterValidator(_is_date),
]


class _Category(_Fitted):
    """A column whose values are words, or numbers that are read as words."""

    writing: Writing = Field(
        default="exact",
        description="how the words are compared; exact in models of earlier releases",
        # The files of these models stay the same.
        exclude_if=lambda writing: writing == "exact",
    )


class _Words(_Category):
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


class HashFeature(_Category):
    """0 if the word is missing, else 2 + CRC-32 of its UTF-8 bytes modulo the bucket count."""

    kind: Literal["hash"] = "hash"
    size: int = Field(ge=FIRST_WORD + 1)


class DateFeature(_Fitted):
    """Days since `origin`; sine and cosine of the day of the year, of the week, and of the time."""

    kind: Literal["date"] = "date"
    origin: IsoDate = Field(description="the latest date of the training part, ISO 8601")
    fill: IsoDate = Field(description="the date that replaces a missing one, ISO 8601")
    indicator: bool
    date_format: DateFormat | None = Field(
        default=None,
        # The files of models whose dates have no format stay the same.
        exclude_if=lambda date_format: date_format is None,
        description="how texts in requests are dates, as in strptime; ISO 8601 is read too",
    )


class Ngrams(Frozen):
    """N-grams from words or from characters, with their weights."""

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


class NgramFeature(_Fitted, Ngrams):
    """A text's n-gram weights (TF-IDF, scaled to length 1)."""

    kind: Literal["ngrams"] = "ngrams"


class TwoNgramsFeature(_Fitted):
    """A text's weights for word n-grams, then for character n-grams; each part has length 1."""

    kind: Literal["words_and_characters"] = "words_and_characters"
    words: Ngrams
    characters: Ngrams

    @model_validator(mode="after")
    def _has_both(self) -> Self:
        if (self.words.analyzer, self.characters.analyzer) != ("words", "characters"):
            raise ValueError("words has n-grams of words, and characters those of characters")
        return self


class TokenFeature(_Words):
    """The indices of a text's first `length` words: 1 for unknown words, 0 after the end."""

    kind: Literal["tokens"] = "tokens"
    length: int = Field(ge=1, le=MAX_LENGTH)


class ImageFeature(Frozen):
    """The pixels of an image: decoded, turned upright, in `channels` colours, of one size, from 0 to 255.

    Each field is a step, in the order in which they are executed. Nothing is fitted.
    """

    column: str = Field(max_length=500)
    type: Literal["image"] = "image"
    kind: Literal["image"] = "image"
    orientation: Literal["exif"] = Field(default="exif", description="turned by its EXIF orientation")
    background: Literal["white"] = Field(default="white", description="behind transparent pixels")
    channels: Literal[1, 3]
    height: Side
    width: Side
    fit: Fit
    resample: Literal["bilinear"] = "bilinear"
    scale: Literal["bytes"] = Field(
        default="bytes", description="0 to 255; the first layer of the model standardizes each channel"
    )

    @property
    def shape(self) -> ImageShape:
        """Return the arrays that images become."""
        return ImageShape(height=self.height, width=self.width, channels=self.channels, fit=self.fit)


Feature = Annotated[
    NumberFeature
    | OneHotFeature
    | IndexFeature
    | HashFeature
    | DateFeature
    | NgramFeature
    | TwoNgramsFeature
    | TokenFeature
    | ImageFeature,
    Field(discriminator="kind"),
]


class Features(Frozen):
    """A fitted pipeline, stored in `features.json`."""

    version: Literal[1] = 1
    columns: tuple[Feature, ...] = Field(min_length=1, max_length=20_000, fail_fast=True)
    window: InputWindow | None = Field(
        default=None,
        # The files of models without windows stay the same.
        exclude_if=lambda window: window is None,
    )

    @model_validator(mode="after")
    def _names_columns_once(self) -> Self:
        names = [feature.column for feature in self.columns]
        if len({*names}) < len(names):
            raise ValueError("columns names a column twice")
        if len(names) > 1 and any(isinstance(feature, ImageFeature) for feature in self.columns):
            raise ValueError("columns has an image, with which no other column can be combined")
        if self.window is not None and any(isinstance(f, ImageFeature | TokenFeature) for f in self.columns):
            raise ValueError("windows have neither images nor words in their order")
        return self

    @property
    def image(self) -> ImageFeature | None:
        """Return the image that is the whole input, or None for a table's columns."""
        first = self.columns[0]
        return first if isinstance(first, ImageFeature) else None

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Return the shape of one input row."""
        if self.image is not None:
            return self.image.height, self.image.width, self.image.channels
        return (self.width,) if self.window is None else (self.window.rows, self.width)

    @property
    def width(self) -> int:
        """Count the input's positions. A window counts as one of its rows."""
        return sum(map(positions_of, self.columns))


def positions_of(feature: Feature) -> int:
    """Count the positions that a fitted column fills."""
    match feature:
        case NumberFeature():
            return 1 + feature.indicator
        case DateFeature():
            return DATE_POSITIONS + feature.indicator
        case OneHotFeature() | NgramFeature():
            return feature.size
        case TwoNgramsFeature():
            return feature.words.size + feature.characters.size
        case TokenFeature():
            return feature.length
        case IndexFeature() | HashFeature():
            return 1
        case ImageFeature():
            return feature.height * feature.width * feature.channels
