"""Describes uploads for the OpenAPI document."""

from typing import Any

from pydantic import BaseModel


def either(body: type[BaseModel]) -> dict[str, Any]:
    """Return OpenAPI's description of a route that takes `body` as JSON, or a form with a file."""
    form = {
        "type": "object",
        "required": ["file"],
        "properties": {"file": {"type": "string", "contentMediaType": "application/octet-stream"}},
    }
    content = {
        "application/json": {"schema": body.model_json_schema()},
        "multipart/form-data": {"schema": form},
    }
    return {"requestBody": {"required": True, "content": content}}
