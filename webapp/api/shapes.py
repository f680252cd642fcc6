"""Schemas that several resources share."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any

from ninja import Schema
from pydantic import Field, GetCoreSchemaHandler, PlainSerializer, StringConstraints
from pydantic_core import CoreSchema, core_schema

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length=63)]
Text = Annotated[str, StringConstraints(max_length=10_000)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)]
Id = Annotated[int, Field(ge=0, le=2**63 - 1)]
Number = Annotated[int, Field(ge=0, le=2**31 - 1)]

Time = Annotated[
    datetime,
    PlainSerializer(lambda value: value.astimezone(UTC).isoformat().replace("+00:00", "Z"), return_type=str),
]
"""RFC 3339 in UTC."""

Json = dict[str, Any]


class OneOf:
    """Marks a text as one of a closed set, as in `Annotated[str, OneOf(JobState)]`; any other is a 422.

    An enum would do the same, but those of our models are all called `State`, and the OpenAPI document
    has one place for a name.
    """

    def __init__(self, values: Iterable[str]) -> None:
        self._values = [str(value) for value in values]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return pydantic's schema of a literal."""
        del source, handler
        return core_schema.literal_schema(self._values)


class In(Schema):
    """A body: unknown fields are refused, numbers are finite."""

    model_config = {"extra": "forbid", "allow_inf_nan": False}


def username(user: Any) -> str | None:
    """Return how people and programs call a person; None for the installation itself."""
    return None if user is None else user.username
