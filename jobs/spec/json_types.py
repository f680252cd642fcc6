"""Defines types for JSON values whose content no model describes."""

from typing import Annotated, Any

from pydantic import WithJsonSchema

type JsonValue = Annotated[Any, WithJsonSchema({"description": "Any JSON value."})]

type JsonObject = dict[str, JsonValue]
