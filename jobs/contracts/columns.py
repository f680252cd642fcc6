"""Roles and types of the columns of a table, and how a column becomes numbers."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from jobs.contracts.base import Frozen

ColumnRole = Literal["feature", "target", "id", "weight", "group", "time", "ignore"]
ColumnType = Literal["number", "integer", "boolean", "category", "text", "date", "image", "sequence"]
OfferedRole = Literal["feature", "target", "id", "ignore"]
OfferedType = Literal["number", "integer", "boolean", "category", "text", "date"]
"""Roles and types that a person may choose today."""
NUMERIC: frozenset[ColumnType] = frozenset({"number", "integer", "boolean"})
"""Types whose values are numbers."""

Float32 = Annotated[float, Field(ge=-3.4028234663852886e38, le=3.4028234663852886e38)]
"""A number that a 32-bit float can hold, as the input of a model does. NaN is none."""

Impute = Literal["median", "mean", "constant"]
Encode = Literal["one_hot", "embedding", "hash", "words", "characters", "date"]
MAX_BUCKETS = 65_536

ENCODINGS: dict[ColumnType, tuple[Encode, ...]] = {
    "category": ("one_hot", "embedding", "hash"),
    "integer": ("one_hot", "embedding", "hash"),
    "text": ("words", "characters"),
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

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.impute == "constant") != (self.constant is not None):
            raise ValueError("constant belongs to impute = constant; give both or none")
        if self.buckets is not None and self.encode != "hash":
            raise ValueError("buckets belongs to encode = hash")
        if self.impute is not None and self.encode is not None:
            raise ValueError("impute is for numbers and encode for words; give one of them")
        return self


class ColumnRequest(Frozen):
    """The role and type of a column as a person corrects them; those without a value are proposed."""

    name: str = Field(max_length=500)
    role: ColumnRole | None = None
    type: ColumnType | None = None
