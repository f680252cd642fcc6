"""What ninja's OpenAPI document lacks: the problem answers, which every route can give."""

from typing import Any

from ninja.openapi.schema import OpenAPISchema

from webapp.api.problems import MEDIA_TYPE

DESCRIPTION = """\
Everything that the pages do. Errors are `application/problem+json`; lists are `{items, next}`, cut by
`?limit=` and `?cursor=`; times are RFC 3339 in UTC; NaN and infinities are `null` with
`"nonfinite": true` beside them. `Idempotency-Key` makes a repeated POST do its work once.
"""

PROBLEM: dict[str, Any] = {
    "title": "Problem",
    "type": "object",
    "description": "RFC 9457",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "a sentence for people"},
        "code": {"type": "string", "description": "stable, for programs"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "message"],
                "properties": {
                    "pointer": {"type": "string", "description": "JSON pointer into what was sent"},
                    "message": {"type": "string"},
                },
            },
        },
    },
}

ALWAYS = {
    "400": "Malformed request",
    "401": "Credentials are missing or bad",
    "403": "A scope or role is missing",
    "404": "Not there, or not yours to see",
    "422": "Invalid input",
    "429": "Too many requests",
    "503": "A part is away for a moment",
}
ON_WRITES = {
    "409": "Conflict or illegal transition",
    "412": "Stale If-Match",
    "413": "Too large",
    "415": "Unsupported media type",
}


def with_problems(schema: OpenAPISchema) -> OpenAPISchema:
    """Declare the problem answers of every operation in `schema`."""
    schema["components"]["schemas"]["Problem"] = PROBLEM
    for methods in schema["paths"].values():
        for method, operation in methods.items():
            wanted = ALWAYS if method == "get" else ALWAYS | ON_WRITES
            for status, description in wanted.items():
                operation["responses"].setdefault(int(status), _answer(description))
    return schema


def _answer(description: str) -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": description, "content": content}
