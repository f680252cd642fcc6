"""The committed document is what the routes say; write it anew with UPDATE_OPENAPI=1."""

import json
import os
from pathlib import Path

from webapp.api.site import api

FILE = Path(__file__).parents[2] / "docs" / "openapi.json"


def document() -> str:
    return json.dumps(api.get_openapi_schema(path_prefix="/api/v1/"), indent=1, sort_keys=True) + "\n"


def test_the_committed_document_is_current() -> None:
    if os.environ.get("UPDATE_OPENAPI") == "1":
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(document())
    hint = "routes changed: UPDATE_OPENAPI=1 pytest tests/api/test_openapi.py, then commit docs/openapi.json"
    assert FILE.read_text() == document(), hint


def test_every_operation_has_a_sentence_and_names_its_problems() -> None:
    for path, methods in json.loads(document())["paths"].items():
        for method, operation in methods.items():
            assert operation.get("description"), f"{method} {path} says nothing"
            assert "401" in operation["responses"], f"{method} {path}"


def test_operation_ids_are_unique() -> None:
    paths = json.loads(document())["paths"].values()
    ids = [operation["operationId"] for methods in paths for operation in methods.values()]
    assert len(ids) == len(set(ids))
