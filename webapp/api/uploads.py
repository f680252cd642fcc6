"""Describes the multipart forms of uploads for the OpenAPI document."""

from typing import Any

from pydantic import Field

from webapp.api.shapes import In


class VersionIn(In):
    """A new version from a job's artifact."""

    artifact: str = Field(pattern=r"^[0-9a-f]{64}$", examples=["0" * 64], description="Its digest.")


FILE = {"type": "string", "contentMediaType": "application/octet-stream"}
TEXT = {"type": "string"}
FORMS: dict[str, dict[str, Any]] = {
    "DatasetUpload": {
        "type": "object",
        "title": "DatasetUpload",
        "description": "A new data set or version.",
        "required": ["file"],
        "properties": {
            "project": TEXT,
            "slug": TEXT,
            "file": FILE | {"description": "CSV, TSV, JSON Lines, Parquet, Arrow, NPZ or NPY."},
            "name": TEXT,
            "description": TEXT,
            "target": TEXT | {"description": "The column to predict."},
            "features": TEXT | {"description": "Column names, separated by commas."},
            "task": TEXT,
            "columns": TEXT
            | {"description": 'Corrected roles and types: `[{"name": …, "role": …, "type": …}]` as JSON.'},
            "dialect": TEXT
            | {"description": "`{delimiter, encoding, decimal, header}` as JSON; others are detected."},
            "max_bad_share": TEXT
            | {"description": "Share of damaged rows that may be left out; 0 by default."},
            "sha256": TEXT | {"description": "The digest of the file; it is verified."},
        },
    },
    "ModelUpload": {
        "type": "object",
        "title": "ModelUpload",
        "description": "A new version from a file.",
        "required": ["file"],
        "properties": {"file": FILE | {"description": "A .keras file."}},
    },
}
"""The schemas of the multipart forms, by name."""


def described(form: str, json: str | None = None) -> dict[str, Any]:
    """Return the OpenAPI description of a request body that is a form, or a JSON schema named `json`."""
    content = {"multipart/form-data": {"schema": {"$ref": f"#/components/schemas/{form}"}}}
    if json is not None:
        content["application/json"] = {"schema": {"$ref": f"#/components/schemas/{json}"}}
    return {"requestBody": {"required": True, "content": content}}
