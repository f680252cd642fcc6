"""Defines types that several request bodies and query parameters share."""

from collections.abc import Iterable
from typing import Annotated, Any

from ninja import Schema
from pydantic import Field, GetCoreSchemaHandler, StringConstraints
from pydantic_core import CoreSchema, core_schema

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length=63)]
Text = Annotated[str, StringConstraints(max_length=10_000)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)]
Id = Annotated[int, Field(ge=0, le=2**63 - 1)]
Number = Annotated[int, Field(ge=0, le=2**31 - 1)]


class OneOf:
    """Restricts a string to a set of values, as in `Annotated[str, OneOf(JobState)]`; others are a 422.

    Enums cannot be used: the models' enums are all called `State`, and schema names must be unique in
    the OpenAPI document.
    """

    def __init__(self, values: Iterable[str]) -> None:
        self._values = [str(value) for value in values]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return a literal's core schema."""
        del source, handler
        return core_schema.literal_schema(self._values)


class In(Schema):
    """Base class for request bodies. Unknown fields and numbers that are not finite are refused."""

    model_config = {"extra": "forbid", "allow_inf_nan": False}
