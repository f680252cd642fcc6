"""Plans how a model reads each table column."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from jobs.spec.data.columns import (
    ENCODINGS,
    NUMERIC,
    ColumnOptions,
    ColumnType,
    Encode,
    Impute,
    TextEncode,
)
from jobs.spec.data.features import (
    DATE_POSITIONS,
    DEFAULT_BUCKETS,
    DEFAULT_LENGTH,
    FIRST_WORD,
    MAX_NGRAMS,
    MAX_ONE_HOT,
    MAX_WORDS,
    NGRAMS,
    SIZED,
)
from jobs.spec.data.images import ImageShape
from jobs.spec.data.number_format import NumberFormat
from jobs.spec.data.profile import Column, InputBlock
from jobs.spec.data.writings import Writing


class ColumnPlan(NamedTuple):
    """How one column becomes numbers.

    Attributes:
        column: its name.
        type: its values' type.
        encode: how words, texts or dates are encoded; None for numbers.
        impute: what replaces a missing number.
        constant: the replacement if `impute` is constant.
        size: one-hot values, indices or n-grams, the ones for missing and other values included.
        indicator: whether a position shows that the value is missing.
        length: the words that are read from a text in their order, each as a position.
        words: the number of word n-grams, if character n-grams follow.
        image: the arrays that images become; None for all other columns.
        number_format: how its texts are numbers; None if only numbers are taken.
        gap_words: the words that are missing values; None for the usual ones.
        misfit_words: words that are missing values as well, since they were no numbers or dates in the data.
        date_format: how texts are dates; None for ISO 8601 alone.
        writing: how the words of a category are compared.
    """

    column: str
    type: ColumnType
    encode: Encode | None
    impute: Impute = "median"
    constant: float = 0.0
    size: int = 1
    indicator: bool = False
    length: int = 0
    words: int = 0
    image: ImageShape | None = None
    number_format: NumberFormat | None = None
    gap_words: tuple[str, ...] | None = None
    misfit_words: tuple[str, ...] = ()
    date_format: str | None = None
    writing: Writing = "trimmed"

    @property
    def positions(self) -> int:
        """Count the input's positions."""
        if self.is_embedded:
            return self.length if self.encode == "tokens" else 1
        width = DATE_POSITIONS if self.encode == "date" else self.size
        return width + self.indicator

    @property
    def is_embedded(self) -> bool:
        """Return whether its positions hold indices, which the model turns into vectors."""
        return self.encode in ("embedding", "hash", "tokens")


def plan_columns(
    columns: Iterable[Column], options: Mapping[str, ColumnOptions], texts: TextEncode = "words"
) -> tuple[ColumnPlan, ...]:
    """Return how the given columns become numbers.

    Args:
        columns: those with a feature's role, in input order.
        options: by column name.
        texts: the encoding for texts for which none is chosen.

    Raises:
        ValueError: an option does not fit its column's type; the message names the column.
    """
    plans = tuple(plan_column(column, options.get(column.name, ColumnOptions()), texts) for column in columns)
    images = [plan.column for plan in plans if plan.image is not None]
    if images and len(plans) > 1:
        others = ", ".join(plan.column for plan in plans if plan.image is None)
        raise ValueError(f"column {images[0]!r} has images, with which {others} cannot be combined")
    return plans


def input_shape(plans: Sequence[ColumnPlan]) -> tuple[int, ...]:
    """Return the shape of one input row."""
    if len(plans) == 1 and (image := plans[0].image) is not None:
        return image.height, image.width, image.channels
    return (sum(plan.positions for plan in plans),)


def plan_column(column: Column, options: ColumnOptions, texts: TextEncode = "words") -> ColumnPlan:
    """Return how one column becomes numbers; see `plan_columns`.

    Raises:
        ValueError: an option does not fit the column's type; the message names the column.
    """
    kind = column.type or "number"
    encode = options.encode or _default_encoding(column, texts)
    if refusal := _refusal(column.name, kind, options, encode):
        raise ValueError(refusal)
    plan = ColumnPlan(
        column.name,
        kind,
        encode,
        number_format=column.number_format,
        gap_words=column.gap_words,
        misfit_words=column.misfits.words if column.misfits is not None else (),
        writing="folded" if column.merge_labels else "trimmed",
    )
    match encode:
        case "one_hot":
            return plan._replace(size=FIRST_WORD + (column.distinct or 0))
        case "embedding":
            return plan._replace(size=FIRST_WORD + min(column.frequent or 0, options.size or MAX_WORDS))
        case "hash":
            return plan._replace(size=FIRST_WORD + (options.buckets or DEFAULT_BUCKETS))
        case "words" | "characters" | "words_and_characters":
            return _with_ngrams(plan, column, options)
        case "tokens":
            return plan._replace(
                size=FIRST_WORD + min(column.vocabulary or MAX_WORDS, options.size or MAX_WORDS),
                length=options.length or min(column.length or DEFAULT_LENGTH, DEFAULT_LENGTH),
            )
        case "date":
            return plan._replace(indicator=_has_indicator(column, options), date_format=column.date_format)
        case "pixels" if column.image is not None:
            image = column.image
            return plan._replace(image=image, size=image.height * image.width * image.channels)
        case _:
            return plan._replace(
                impute=options.impute or "median",
                constant=options.constant or 0.0,
                indicator=_has_indicator(column, options),
            )


def _has_indicator(column: Column, options: ColumnOptions) -> bool:
    return column.missing > 0 if options.indicator is None else options.indicator


def _with_ngrams(plan: ColumnPlan, column: Column, options: ColumnOptions) -> ColumnPlan:
    """Return the plan with the numbers of n-grams for its encoding."""
    most = min(options.size or MAX_NGRAMS, MAX_NGRAMS)
    # The profile counts words. Parts of words are far more, so only `most` bounds these.
    words = min(column.ngrams or MAX_NGRAMS, options.size or MAX_NGRAMS)
    if plan.encode == "words":
        return plan._replace(size=words)
    if plan.encode == "characters":
        return plan._replace(size=most)
    return plan._replace(size=words + most, words=words)


def ngrams_refusal(column: Column, options: ColumnOptions, texts: TextEncode) -> str | None:
    """Return why a column cannot have so many n-grams, or None if it can.

    A plan only bounds their number, so that models from earlier releases can be trained further.
    """
    encode = options.encode or _default_encoding(column, texts)
    if encode not in NGRAMS or options.size is None or options.size <= MAX_NGRAMS:
        return None
    return (
        f"column {column.name!r} is encoded as {encode}, of which there are at most {MAX_NGRAMS:,} n-grams "
        f"of each kind; choose a size up to {MAX_NGRAMS:,}, or encode it as tokens"
    )


def _default_encoding(column: Column, texts: TextEncode) -> Encode | None:
    if column.type == "category":
        if (column.distinct or 0) <= MAX_ONE_HOT:
            return "one_hot"
        # Without a value in several rows, no index of its own could be learnt.
        return "embedding" if column.frequent else "hash"
    if column.type == "text":
        return texts
    by_type: dict[str, Encode] = {"date": "date", "image": "pixels"}
    return by_type.get(column.type or "number")


def _refusal(name: str, kind: ColumnType, options: ColumnOptions, encode: Encode | None) -> str | None:
    allowed = ENCODINGS.get(kind, ())
    if options.encode is not None and options.encode not in allowed:
        choice = ", ".join(allowed) or "none"
        return f"column {name!r} of type {kind} cannot be encoded as {options.encode}; there is {choice}"
    if options.impute is not None and kind not in NUMERIC:
        return f"column {name!r} of type {kind} has no {options.impute}; impute is for numbers"
    if options.size is not None and encode not in SIZED:
        return f"column {name!r} is not encoded as {', '.join(SIZED)}, so it has no size"
    # A missing category has a position or an index of its own.
    if options.indicator is not None and encode not in (None, "date"):
        return (
            f"column {name!r} is encoded as {encode}, so it has no indicator; that is for numbers and dates"
        )
    return None


def input_blocks(plans: Sequence[ColumnPlan]) -> tuple[InputBlock, ...]:
    """Return the positions that each column fills; none for an image, which is the whole input."""
    if any(plan.image is not None for plan in plans):
        return ()
    blocks, start = [], 0
    for plan in plans:
        size = plan.size if plan.is_embedded else 0
        block = InputBlock(
            column=plan.column, start=start, positions=plan.positions, kind=_kind(plan), size=size
        )
        blocks.append(block)
        start += plan.positions
    return tuple(blocks)


def _kind(plan: ColumnPlan) -> Literal["number", "plain", "index", "tokens"]:
    if plan.is_embedded:
        return "tokens" if plan.encode == "tokens" else "index"
    # Standardizing a value that few rows have would make it many times larger than all others.
    return "number" if plan.encode in (None, "date") else "plain"
