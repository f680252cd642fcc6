"""Declares the base class of answers, and the types that several of them share."""

from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, NotRequired, TypedDict, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from jobs.spec.data.columns import ColumnType


class Answer(BaseModel):
    """An immutable answer. Aliases are the public names."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)


@cache
def _adapter(source: Any) -> TypeAdapter[Any]:
    return TypeAdapter(source)


# Stored JSON was checked when it was written, and lists and metrics are read thousands at a time.
class _AsStored:
    """Documents a type without validating or converting the value."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def describe(_: CoreSchema, describe_core: GetJsonSchemaHandler) -> JsonSchemaValue:
            return describe_core(_adapter(source).core_schema)

        del handler
        return core_schema.any_schema(metadata={"pydantic_js_functions": [describe]})


T = TypeVar("T")
# Not a `type` statement, which would give each use a schema of its own.
Stored = Annotated[T, _AsStored()]
"""A value that is documented as `T` and passed through as it is."""

Time = Annotated[
    datetime,
    PlainSerializer(lambda value: value.astimezone(UTC).isoformat().replace("+00:00", "Z"), return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""RFC 3339 in UTC."""

type Parameter = Annotated[
    bool | int | float | str,
    WithJsonSchema(
        {
            "description": "The value of a hyperparameter.",
            "anyOf": [{"type": "boolean"}, {"type": "integer"}, {"type": "number"}, {"type": "string"}],
        }
    ),
]

Nonfinite = Annotated[bool, Field(description="Present if a value is not finite; it is null.")]

type Figures = dict[str, float | None]
"""Metrics by name; null where a value is not finite."""


class CauseOut(TypedDict):
    """Why an input was refused."""

    code: Annotated[str, Field(description="A stable code for programs.")]
    message: Annotated[str, Field(description="A sentence for people.")]


class ErrorOut(CauseOut):
    """Why something failed."""

    traceback: NotRequired[Annotated[str, Field(description="The Python traceback, if there is one.")]]


class TensorOut(TypedDict):
    """One named tensor."""

    name: str
    dtype: str
    shape: Annotated[list[int | None], Field(description="Without the batch dimension; null means any size.")]


class InputColumnOut(TypedDict):
    """A column of a table from which the input of a model is made."""

    name: str
    type: ColumnType


class InputWindowOut(TypedDict):
    """Rows of a table that are one instance: of one group, in the order of time."""

    rows: int
    horizon: Annotated[int, Field(description="How many rows after the last one the predicted row is.")]
    time: Annotated[str, Field(description="The column that orders the rows, oldest first.")]
    group: Annotated[
        str | None, Field(description="The column with the same value in all rows of an instance.")
    ]


class SignatureOut(TypedDict):
    """The inputs and outputs of a model; empty until the model has been loaded once."""

    inputs: NotRequired[list[TensorOut]]
    outputs: NotRequired[list[TensorOut]]
    columns: NotRequired[
        Annotated[
            list[InputColumnOut],
            Field(description="The columns of a table that the model takes instead of its input."),
        ]
    ]
    window: NotRequired[
        Annotated[
            InputWindowOut, Field(description="Set if an instance is several rows of a table instead of one.")
        ]
    ]
