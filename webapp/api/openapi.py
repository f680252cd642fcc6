"""Adds error responses and form schemas to django-ninja's OpenAPI document."""

from typing import Any

from ninja.openapi.schema import OpenAPISchema

from webapp.api.data import uploads
from webapp.api.data.uploads import FORMS
from webapp.api.problems import MEDIA_TYPE

DESCRIPTION = """\
The REST API of Trainyard. It can do everything that the pages can.

Errors are `application/problem+json`. Lists are `{items, next}`; `?limit=` and `?cursor=` select a page.
Times are RFC 3339 in UTC. NaN and infinities are `null`, and the object has `"nonfinite": true`.
With an `Idempotency-Key`, a repeated POST has no further effect and returns the first response.
"""

PROBLEM: dict[str, Any] = {
    "title": "Problem",
    "type": "object",
    "description": "An error (RFC 9457).",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "A sentence for people."},
        "code": {"type": "string", "description": "A stable code for programs."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "message"],
                "properties": {
                    "pointer": {"type": "string", "description": "JSON pointer into the request body."},
                    "message": {"type": "string"},
                },
            },
        },
        "referrers": {
            "type": "array",
            "description": "With the code `in_use`: what prevents a deletion.",
            "items": {"$ref": "#/components/schemas/ReferrerOut"},
        },
    },
}

# Error responses by status, as descriptions.
ALWAYS = {
    "400": "Malformed request",
    "401": "Credentials are missing or invalid",
    "403": "A scope or role is missing",
    "404": "Not found, or not visible to the caller",
    "422": "Invalid input",
    "429": "Too many requests",
    "503": "A component is temporarily unavailable",
}
ON_WRITES = {
    "409": "Conflict or illegal transition",
    "412": "Stale If-Match",
    "413": "Too large",
    "415": "Unsupported media type",
}


def _drop_defaults_of_objects(schema: dict[str, Any]) -> None:
    for field in schema.get("properties", {}).values():
        # The schema of the object has these defaults as well, and generators of clients refuse them here.
        if isinstance(field.get("default"), dict):
            del field["default"]
        # Of a body that only one operation takes, an object is described in its place.
        _drop_defaults_of_objects(field)


def complete_document(schema: OpenAPISchema) -> OpenAPISchema:
    """Add every operation's error responses and the schemas that django-ninja does not find."""
    schemas = schema["components"]["schemas"]
    schemas |= {"Problem": PROBLEM, **FORMS}
    for name, adapter in uploads.BODIES.items():
        body = adapter.json_schema(ref_template="#/components/schemas/{model}")
        schemas |= {**body.pop("$defs", {}), **schemas, name: body}
    for component in schema["components"]["schemas"].values():
        _drop_defaults_of_objects(component)
    answer = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for methods in schema["paths"].values():
        for method, operation in methods.items():
            statuses = ALWAYS if method == "get" else ALWAYS | ON_WRITES
            for status, description in statuses.items():
                response = {"description": description, "content": answer}
                # django-ninja's own keys are integers.
                operation["responses"].setdefault(int(status), response)
    return schema
