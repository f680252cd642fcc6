"""Defines the types of values whose content no model describes: any JSON."""

from typing import Annotated, Any

from pydantic import WithJsonSchema

type JsonValue = Annotated[Any, WithJsonSchema({"description": "Any JSON value."})]

type JsonObject = dict[str, JsonValue]
