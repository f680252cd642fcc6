"""Executes a fitted pipeline: table columns become a model's input.

Each row is computed by itself, so a row gives the same bits alone and among others, in training and serving.
"""

import functools
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jobs.spec.data.columns import ColumnType
from jobs.spec.data.features import (
    FIRST_WORD,
    MISSING,
    OTHER,
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
    positions_of,
)
from jobs.spec.data.number_format import NumberFormat
from jobs.spec.data.writings import READERS
from workers.features.dates import positions_of_dates
from workers.features.images import decode, from_base64
from workers.features.ngrams import NgramWeights, words_of
from workers.features.numeric_rows import NumericRows
from workers.features.values import (
    Array,
    BadValue,
    TextRule,
    as_words,
    from_json,
    from_stored,
    word_of,
    words_from_json,
    words_from_stored,
)


class Pipeline:
    """A fitted pipeline, ready to be executed.

    Attributes:
        features: the description from which it was made.
    """

    def __init__(self, features: Features) -> None:
        self.features = features
        self._encoders = [
            _encoder(feature) for feature in features.columns if not isinstance(feature, ImageFeature)
        ]
        self._widths = [positions_of(feature) for feature in features.columns]
        self._texts = {
            feature.column: TextRule(
                feature.number_format,
                feature.gap_words,
                feature.date_format if isinstance(feature, DateFeature) else None,
                feature.misfit_words,
            )
            for feature in features.columns
            if not isinstance(feature, ImageFeature)
        }
        self._numbers = {feature.column: _words_by_number(feature) for feature in features.columns}

    @property
    def columns(self) -> dict[str, ColumnType]:
        """Return the column types by name."""
        return {feature.column: feature.type for feature in self.features.columns}

    def of_stored(self, columns: Mapping[str, Array]) -> Array:
        """Return the input for stored columns, (rows, width) float32; (rows, …) uint8 for images.

        For windows, these are their single rows.

        Args:
            columns: by name, (rows,) each, and (rows, …) for images; others than the pipeline's are
                ignored.

        Raises:
            BadValue: a column has values with another type.
        """
        if (image := self.features.image) is not None:
            return _stored_pixels(columns[image.column], image)
        return self._join(
            [
                _from_stored(feature, columns[feature.column], self._texts[feature.column])
                for feature in self.features.columns
            ]
        )

    def of_rows(self, rows: Sequence[Mapping[str, object]]) -> Array:
        """Return the input for JSON objects, one for each row, (rows, …) float32.

        A missing key equals null.

        Raises:
            BadValue: a key is unknown, or a value does not have its column's type.
        """
        columns = self.columns
        for number, row in enumerate(rows):
            if not row.keys() <= columns.keys():
                self._refuse_unknown([key for key in row if key not in columns], f"row {number + 1}")
        return self.of_json({name: [row.get(name) for row in rows] for name in columns}, len(rows))

    def of_json(self, columns: Mapping[str, Sequence[object]], rows: int) -> Array:
        """Return the input for lists with JSON values, (rows, …) float32.

        Args:
            columns: by name; a missing column is all null.
            rows: how many values each has.

        Raises:
            BadValue: a column is unknown, or a value does not have its column's type.
        """
        types = self.columns
        self._refuse_unknown([name for name in columns if name not in types], "the request")
        absent = [None] * rows
        if (image := self.features.image) is not None:
            return _sent_pixels(columns.get(image.column, absent), image)
        return self._join(
            [
                _from_json(
                    feature,
                    _with_words(columns.get(feature.column, absent), self._numbers[feature.column]),
                    self._texts[feature.column],
                )
                for feature in self.features.columns
            ]
        )

    def of_windows(self, instances: Sequence[Sequence[Mapping[str, object]]]) -> Array:
        """Return the input for windows with JSON objects, (windows, window rows, width) float32.

        If there are more rows than a window has, the last ones are used.

        Raises:
            BadValue: a window has too few rows, a key is unknown, or a value does not have its
                column.
        """
        size = self.rows_of_window
        for number, rows in enumerate(instances):
            if len(rows) < size:
                raise BadValue(
                    f"instance {number + 1} has {len(rows)} rows; the model takes {size}, the oldest first"
                )
        parts = []
        for number, rows in enumerate(instances):
            try:
                parts.append(self.of_rows(rows[len(rows) - size :]))
            except BadValue as error:
                raise BadValue(f"instance {number + 1}: {error}") from error
        return np.stack(parts)

    @property
    def rows_of_window(self) -> int:
        """Return how many rows one prediction takes: 1 without windows."""
        return 1 if self.features.window is None else self.features.window.rows

    @functools.cached_property
    def numeric_rows(self) -> NumericRows | None:
        """Return what encodes rows of numbers at once; None if some columns are no numbers."""
        return NumericRows.of(self.features)

    def of_nothing(self, rows: int) -> Array:
        """Return an input that every pipeline may make: rows without values, or black images."""
        if self.features.image is not None:
            return np.zeros((rows, *self.features.input_shape), np.float32)
        if self.features.window is not None:
            return self.of_json({}, rows * self.rows_of_window).reshape(rows, *self.features.input_shape)
        return self.of_json({}, rows)

    def _refuse_unknown(self, names: list[str], where: str) -> None:
        if names:
            listed = ", ".join(list(self.columns)[:20])
            raise BadValue(f"{where} has the unknown column {names[0]!r}; the columns are {listed}")

    def _join(self, values: list[Array]) -> Array:
        out = np.zeros((len(values[0]), sum(self._widths)), np.float32)
        start = 0
        for encode, column, width in zip(self._encoders, values, self._widths, strict=True):
            encode(column, out[:, start : start + width])
            start += width
        return out


def _reads_words(feature: Feature) -> bool:
    """Return whether a feature reads its values as words; earlier models read whole numbers as floats."""
    return isinstance(feature, OneHotFeature | IndexFeature | HashFeature) and feature.writing != "exact"


def _from_stored(feature: Feature, column: Array, texts: TextRule) -> Array:
    read = words_from_stored if _reads_words(feature) else from_stored
    return read(column, feature.type, feature.column, texts)


def _from_json(feature: Feature, values: Sequence[object], texts: TextRule) -> Array:
    read = words_from_json if _reads_words(feature) else from_json
    return read(values, feature.type, feature.column, texts)


def _words_by_number(feature: Feature) -> dict[str, str]:
    """Return categories by the number that they are, as 0.00 by 0, which a JSON number means."""
    if not isinstance(feature, OneHotFeature | IndexFeature) or feature.type != "category":
        return {}
    number_word = TextRule(feature.number_format or NumberFormat()).number_word
    pairs = [(number_word(word), word) for word in feature.words]
    # Of several categories that are the same number, none is meant for sure.
    counts = Counter(number for number, _ in pairs)
    return {number: word for number, word in pairs if number != word and counts[number] == 1}


def _with_words(values: Sequence[object], words: Mapping[str, str]) -> Sequence[object]:
    """Return JSON values with categories in place of the numbers that mean one."""
    if not words:
        return values
    return [words.get(word_of(value), value) if type(value) in (int, float) else value for value in values]


def _stored_pixels(images: Array, feature: ImageFeature) -> Array:
    shape = feature.height, feature.width, feature.channels
    if images.dtype != np.uint8 or images.shape[1:] != shape:
        raise BadValue(
            f"column {feature.column!r} takes images of shape {shape}, but these data have {images.dtype} "
            f"values of shape {images.shape[1:]}"
        )
    return images


def _sent_pixels(values: Sequence[object], feature: ImageFeature) -> Array:
    """Return images from a request, (rows, height, width, channels) float32."""
    pixels = np.empty((len(values), feature.height, feature.width, feature.channels), np.float32)
    for row, value in enumerate(values):
        try:
            pixels[row] = decode(_body(value), feature.shape)
        except BadValue as error:
            raise BadValue(f"column {feature.column!r} has in row {row + 1} {error}") from error
    return pixels


def _body(value: object) -> bytes:
    """Return an image's file: from an object with its base64, or as it is."""
    match value:
        case bytes():
            return value
        case {"b64": str(text), **others} if not others:
            return from_base64(text)
        case None:
            raise BadValue("no image")
    raise BadValue('no image of the form {"b64": "…"}')


type Encoder = Callable[[Array, Array], None]
"""Fills the positions of one column, (rows, positions) float32, which are 0 before."""


def _encoder(feature: Feature) -> Encoder:
    match feature:
        case ImageFeature():
            raise TypeError("an image is no column of numbers")
        case NumberFeature():
            return _number_encoder(feature)
        case DateFeature():
            return _date_encoder(feature)
        case OneHotFeature():
            return _one_hot_encoder(feature)
        case IndexFeature():
            return _index_encoder(feature)
        case HashFeature():
            return _hash_encoder(feature)
        case NgramFeature():
            return _ngram_encoder(feature)
        case TwoNgramsFeature():
            return _two_ngrams_encoder(feature)
        case TokenFeature():
            return _token_encoder(feature)


def _number_encoder(feature: NumberFeature) -> Encoder:
    def encode(numbers: Array, out: Array) -> None:
        gaps = np.isnan(numbers)
        out[:, 0] = np.where(gaps, feature.fill, numbers) if gaps.any() else numbers
        if feature.indicator:
            out[:, 1] = gaps

    return encode


def _date_encoder(feature: DateFeature) -> Encoder:
    origin, fill = np.datetime64(feature.origin), np.datetime64(feature.fill)

    def encode(dates: Array, out: Array) -> None:
        gaps = np.isnat(dates)
        numbers = positions_of_dates(np.where(gaps, fill, dates), origin)
        out[:, : numbers.shape[1]] = numbers
        if feature.indicator:
            out[:, -1] = gaps

    return encode


def _indices(feature: OneHotFeature | IndexFeature) -> Callable[[Array], Array]:
    """Return the function that maps words, or numbers that are categories, to indices, (rows,) int64."""
    read = READERS[feature.writing]
    exact = {"": MISSING} | {word: index for index, word in enumerate(feature.words, start=FIRST_WORD)}
    # Most words are as in the training rows, and need not be read.
    indices = {read(word): index for word, index in exact.items()}
    # 1.50 is the word 1.5 if the file had numbers, unless it is a word itself.
    number_word = TextRule(feature.number_format).number_word
    has_numbers = feature.number_format is not None
    numbers = {number_word(word): index for word, index in exact.items()} | exact if has_numbers else {}

    def index_of(word: str) -> int:
        if (index := exact.get(word)) is None and (index := indices.get(read(word))) is None:
            return numbers.get(number_word(word), OTHER) if has_numbers else OTHER
        return index

    def lookup(column: Array) -> Array:
        words = as_words(column).tolist()
        return np.fromiter(map(index_of, words), np.int64, len(words))

    return lookup


def _one_hot_encoder(feature: OneHotFeature) -> Encoder:
    lookup = _indices(feature)

    def encode(words: Array, out: Array) -> None:
        out[np.arange(len(words)), lookup(words)] = 1.0

    return encode


def _index_encoder(feature: IndexFeature) -> Encoder:
    lookup = _indices(feature)

    def encode(words: Array, out: Array) -> None:
        out[:, 0] = lookup(words)

    return encode


def _hash_encoder(feature: HashFeature) -> Encoder:
    buckets, read = feature.size - FIRST_WORD, READERS[feature.writing]
    number_word = TextRule(feature.number_format).number_word

    def encode(words: Array, out: Array) -> None:
        texts = map(read, map(number_word, as_words(words).tolist()))
        out[:, 0] = [FIRST_WORD + zlib.crc32(text.encode()) % buckets if text else MISSING for text in texts]

    return encode


def _token_encoder(feature: TokenFeature) -> Encoder:
    indices = {word: index for index, word in enumerate(feature.words, start=FIRST_WORD)}

    def encode(texts: Array, out: Array) -> None:
        for row, text in enumerate(texts.tolist()):
            words = words_of(text)[: feature.length]
            out[row, : len(words)] = [indices.get(word, OTHER) for word in words]

    return encode


def _two_ngrams_encoder(feature: TwoNgramsFeature) -> Encoder:
    words, characters = _ngram_encoder(feature.words), _ngram_encoder(feature.characters)
    width = feature.words.size

    def encode(texts: Array, out: Array) -> None:
        words(texts, out[:, :width])
        characters(texts, out[:, width:])

    return encode


def _ngram_encoder(feature: Ngrams) -> Encoder:
    weights = NgramWeights(feature.analyzer, feature.ngrams, feature.weights)

    def encode(texts: Array, out: Array) -> None:
        for row, text in enumerate(texts.tolist()):
            values = weights.weigh(text)
            out[row, list(values)] = list(values.values())

    return encode
