"""Declares the base class for every model in `jobs.spec`."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, TypeAdapter, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


class DocumentedAs:
    """Gives a field another type's JSON schema, as in `Annotated[Any, DocumentedAs(ExperimentSpec)]`.

    Validation and serialization remain those of the annotated type.
    """

    def __init__(self, source: Any) -> None:
        self._schema = TypeAdapter(source).core_schema

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the other type's schema; a model becomes a reference to a definition."""
        return handler(self._schema)


type Argument = Annotated[
    Any,
    WithJsonSchema(
        {
            "description": "The value of an argument, as the class of the arguments declares it.",
            "anyOf": [{"type": name} for name in ("boolean", "integer", "number", "string", "null")],
        }
    ),
]
"""Arguments are validated by their own class, which a field beside them selects."""


class Frozen(BaseModel):
    """An immutable model that refuses unknown fields.

    JSON has no NaN and no infinity, so floats are finite unless a field allows otherwise.
    Aliases are the public names. Dumps use them by default, so that a dump can be parsed again.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, serialize_by_alias=True)
