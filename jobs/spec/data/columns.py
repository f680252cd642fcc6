"""Declares the roles and types of columns, and how a column becomes numbers."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from jobs.spec.base import Frozen
from jobs.spec.data.dates.formats import MAX_FORMAT, MAX_FORMATS, check_date_format
from jobs.spec.data.number_format import NumberFormat

ColumnRole = Literal["feature", "target", "id", "weight", "group", "time", "split", "ignore"]
ColumnType = Literal["number", "integer", "boolean", "category", "text", "date", "image", "sequence"]
OfferedRole = Literal["feature", "target", "id", "weight", "group", "time", "split", "ignore"]
OfferedType = Literal["number", "integer", "boolean", "category", "text", "date"]
"""Roles and types that a person may choose today."""
ArrayType = Literal["image", "sequence"]
"""Types that a person may choose for an array whose rows have two axes."""
ARRAY_ROLES: tuple[ColumnRole, ...] = ("feature", "target", "split")
"""Roles that arrays have."""
SPLIT_ROLES: tuple[ColumnRole, ...] = ("group", "time", "split")
"""Roles that decide how rows are split; at most one column has each. `split`: it names each row's part."""
LONE_ROLES: tuple[ColumnRole, ...] = (*SPLIT_ROLES, "weight")
"""Roles that at most one column has, which is no feature and no target."""
WEIGHTS: frozenset[ColumnType] = frozenset({"number", "integer"})
"""Types that a weight column may have."""
ORDERED: frozenset[ColumnType] = frozenset({"number", "integer", "date"})
"""Types whose values have an order, which a column with the role time needs."""
NUMERIC: frozenset[ColumnType] = frozenset({"number", "integer", "boolean"})
"""Types whose values are numbers."""

Float32 = Annotated[float, Field(ge=-3.4028234663852886e38, le=3.4028234663852886e38)]
"""A number that a 32-bit float can hold, as a model's input does. NaN is none."""

Impute = Literal["median", "mean", "constant"]
Encode = Literal[
    "one_hot",
    "embedding",
    "hash",
    "words",
    "characters",
    "words_and_characters",
    "tokens",
    "date",
    "pixels",
]
TextEncode = Literal["words", "characters", "words_and_characters", "tokens"]
MAX_BUCKETS = 65_536
MAX_SIZE = 10_000
MAX_LENGTH = 1_024
"""The most words that are read from a text in their order."""

ENCODINGS: dict[ColumnType, tuple[Encode, ...]] = {
    "category": ("one_hot", "embedding", "hash"),
    "integer": ("one_hot", "embedding", "hash"),
    "text": ("words", "characters", "words_and_characters", "tokens"),
    "date": ("date",),
}
"""The encodings that may be chosen for a type. Numbers are used as they are unless one is chosen."""


class ColumnOptions(Frozen):
    """How the values of one column become numbers. Fields without a value follow from its type."""

    impute: Impute | None = Field(default=None, description="what replaces a missing number")
    constant: Float32 | None = Field(default=None, description="the replacement with impute = constant")
    encode: Encode | None = Field(default=None, description="how words become numbers")
    buckets: Annotated[int, Field(ge=2, le=MAX_BUCKETS)] | None = Field(
        default=None, description="number of hash values with encode = hash"
    )
    length: Annotated[int, Field(ge=1, le=MAX_LENGTH)] | None = Field(
        default=None, description="words of a text that are read with encode = tokens"
    )
    size: Annotated[int, Field(ge=1, le=MAX_SIZE)] | None = Field(
        default=None, description="at most so many words of an embedding or of tokens, or n-grams of a text"
    )
    indicator: bool | None = Field(
        default=None, description="whether a position shows that the number or date is missing"
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.impute == "constant") != (self.constant is not None):
            raise ValueError("constant belongs to impute = constant; give both or none")
        if self.buckets is not None and self.encode != "hash":
            raise ValueError("buckets belongs to encode = hash")
        if self.length is not None and self.encode != "tokens":
            raise ValueError("length belongs to encode = tokens")
        if self.impute is not None and self.encode is not None:
            raise ValueError("impute is for numbers and encode for words; give one of them")
        return self


GapWord = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
GapWords = Annotated[tuple[GapWord, ...], Field(max_length=100)]
"""Words that are missing values, also with blanks around them."""
DateFormat = Annotated[
    str, Field(max_length=MAX_FORMATS * (MAX_FORMAT + 4)), AfterValidator(check_date_format)
]
"""How texts are dates, by the directives of `strptime`; see `jobs.spec.data.dates.formats`."""


class ColumnRequest(Frozen):
    """The role and type of a column as a person corrects them; those without a value are proposed."""

    name: str = Field(max_length=500)
    role: ColumnRole | None = None
    type: ColumnType | None = None
    number_format: NumberFormat | None = Field(
        default=None, description="How its texts are numbers; null if this is decided by all of them."
    )
    gap_words: GapWords | None = Field(
        default=None,
        description="The words that are missing values in this column; every other word is a value. Null if "
        "this is decided by the column.",
    )
    date_format: DateFormat | None = Field(
        default=None,
        description="How the values are dates, as in `strptime`; a column with one has the type date. "
        "`%q` is a quarter, `unix seconds` (milliseconds, microseconds, nanoseconds) counts from 1970, and "
        '" or " separates several formats.',
        examples=["%d/%m/%Y", "%m/%d/%Y %I:%M %p", "%YQ%q", "unix milliseconds"],
    )
    merge_labels: bool | None = Field(
        default=None,
        description="whether values that differ in their writing only become the most frequent of these",
    )

    @model_validator(mode="after")
    def _has_a_format_of_its_type(self) -> Self:
        if self.number_format is not None and self.type not in (None, "number", "integer"):
            raise ValueError(f"number_format belongs to the types number and integer, not to {self.type}")
        if self.number_format is not None and self.date_format is not None:
            raise ValueError("number_format and date_format exclude each other; leave one of them out")
        if self.date_format is not None and self.type not in (None, "date"):
            raise ValueError(
                f"date_format is for columns of type date, but {self.name!r} is given the type {self.type}; "
                "leave one of them out"
            )
        return self

    @property
    def merges_no_words(self) -> bool:
        """Return whether values are to be merged that are no words; earlier releases stored such requests."""
        has_format = self.number_format is not None or self.date_format is not None
        return bool(self.merge_labels) and (has_format or self.type not in (None, "category", "text"))

    def changed_by(self, change: "ColumnRequest") -> "ColumnRequest":
        """Return this request with the fields that are set in `change`.

        A format belongs to a type, so another type is read by a format of its own; only categories are
        merged.
        """
        before = self.model_dump(exclude_none=True)
        if change.type is not None and change.type != self.type:
            before.pop("number_format", None)
            before.pop("date_format", None)
        if change.date_format is not None or change.number_format is not None:
            # The type follows from the format.
            for name in ("type", "number_format", "date_format", "merge_labels"):
                before.pop(name, None)
        if change.type not in (None, "category") or self.merges_no_words:
            before.pop("merge_labels", None)
        return ColumnRequest.model_validate({**before, **change.model_dump(exclude_none=True)})
