"""The committed OpenAPI document is current and typed; UPDATE_OPENAPI=1 updates it."""

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from ninja import NinjaAPI

from webapp.api import openapi
from webapp.api.site import Api, api

FILE = Path(__file__).parents[2] / "docs" / "openapi.json"
OPEN = {
    "JsonValue": "any JSON value",
}
"""Schemas that accept arbitrary JSON of a user, and their meaning."""
UNTYPED: tuple[Any, ...] = ({}, True, None)

Schema = dict[str, Any]


def document() -> str:
    return json.dumps(api.get_openapi_schema(), indent=1, sort_keys=True) + "\n"


@pytest.fixture(scope="module")
def schemas() -> dict[str, Schema]:
    components: dict[str, Schema] = json.loads(document())["components"]["schemas"]
    return components


def operations() -> Iterator[tuple[str, Schema]]:
    for path, methods in json.loads(document())["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def bodies(operation: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield the request body and the successful responses, each with its media type."""
    parts = [operation.get("requestBody", {})]
    parts += [answer for status, answer in operation["responses"].items() if status.startswith("2")]
    for body in parts:
        for kind, content in body.get("content", {}).items():
            yield kind, content["schema"]


def untyped(schema: Any, schemas: dict[str, Schema], place: str, seen: set[str]) -> Iterator[str]:
    """Yield every place in a schema that accepts any value."""
    if schema in UNTYPED:
        yield place
        return
    if (reference := schema.get("$ref")) is not None:
        name = reference.rsplit("/", 1)[-1]
        if name not in OPEN and name not in seen:
            yield from untyped(schemas[name], schemas, name, seen | {name})
        return
    for key in ("anyOf", "oneOf", "allOf"):
        for choice in schema.get(key, ()):
            yield from untyped(choice, schemas, place, seen)
    if schema.get("type") == "array":
        # An array of a fixed length has a schema for each of its values.
        for item in schema.get("prefixItems") or [schema.get("items")]:
            yield from untyped(item, schemas, f"{place}[]", seen)
    elif schema.get("type") == "object":
        for name, value in schema.get("properties", {}).items():
            yield from untyped(value, schemas, f"{place}.{name}", seen)
        if "properties" not in schema or schema.get("additionalProperties"):
            yield from untyped(schema.get("additionalProperties"), schemas, f"{place}.*", seen)
    elif not {"type", "const", "enum", "anyOf", "oneOf", "allOf"} & schema.keys():
        yield place


def test_the_committed_document_is_current() -> None:
    if os.environ.get("UPDATE_OPENAPI") == "1":
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(document())
    hint = "routes changed: UPDATE_OPENAPI=1 pytest tests/api/test_openapi.py, then commit docs/openapi.json"
    assert FILE.read_text() == document(), hint


def test_every_operation_has_a_description_and_error_responses() -> None:
    for name, operation in operations():
        assert operation.get("description"), f"{name} has no description"
        assert "401" in operation["responses"], name


def test_operation_ids_are_unique_and_name_no_module() -> None:
    ids = [operation["operationId"] for _, operation in operations()]
    assert len(ids) == len(set(ids))
    assert not [name for name in ids if "webapp" in name]


def test_every_operation_describes_its_response() -> None:
    for name, operation in operations():
        answers = {status: answer for status, answer in operation["responses"].items() if status[0] == "2"}
        assert answers, name
        for status, answer in answers.items():
            assert status == "204" or answer.get("content"), f"{name} {status} has no body"


def test_every_json_body_is_a_named_schema() -> None:
    for name, operation in operations():
        for kind, schema in bodies(operation):
            if kind in ("application/json", "multipart/form-data"):
                named = "$ref" in schema or all("$ref" in c or c == {"type": "null"} for c in schema["anyOf"])
                assert named, f"{name}: {kind} has no named schema"


def test_no_body_is_untyped_anywhere(schemas: dict[str, Schema]) -> None:
    places = {
        place
        for name, operation in operations()
        for _, schema in bodies(operation)
        for place in untyped(schema, schemas, name, set())
    }
    assert not places, "describe these values, or name a schema for a user's own JSON in OPEN"


def test_open_schemas_are_in_use(schemas: dict[str, Schema]) -> None:
    assert schemas.keys() >= OPEN.keys()


def test_the_document_is_made_once(monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    """Anyone may ask for it, and making it takes a processor for long."""
    first = client.get("/api/v1/openapi.json").content

    def made_again(*_: Any, **__: Any) -> None:
        raise AssertionError("the document is made again")

    monkeypatch.setattr("ninja.main.get_schema", made_again)
    assert client.get("/api/v1/openapi.json").content == first
    assert client.post("/api/v1/openapi.json").status_code == 405


def test_requests_at_the_same_time_wait_for_one_document(monkeypatch: pytest.MonkeyPatch) -> None:
    documents: list[str] = []
    waiting: list[threading.Thread] = []

    def make(_: NinjaAPI, **__: Any) -> Any:
        documents.append("document")
        if len(documents) == 1:
            waiting.append(threading.Thread(target=fresh.get_openapi_schema))
            waiting[0].start()
            waiting[0].join(0.05)
        return {"paths": {}, "components": {"schemas": {}}}

    monkeypatch.setattr(NinjaAPI, "get_openapi_schema", make)
    monkeypatch.setattr(openapi, "complete_document", lambda schema: schema)
    fresh = Api(urls_namespace="fresh")
    first = fresh.get_openapi_schema()
    waiting[0].join()
    assert documents == ["document"]
    assert fresh.get_openapi_schema() is first
