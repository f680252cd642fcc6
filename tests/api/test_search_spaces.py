"""Search spaces from other tools are imported over REST."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from jobs.models import User
from webapp.api.experiments import search_spaces

SWEEP = "method: random\nparameters: {units: {values: [16, 32]}, rate: {distribution: normal}}"
UNITS = {"name": "units", "kind": "int", "min": 16, "max": 64, "step": 16}


@pytest.fixture
def caller(call: Callable[..., Any]) -> Any:
    return call(User.objects.create(username="ada"))


def test_a_text_is_read_and_its_format_recognized(caller: Any) -> None:
    answer = caller.post("/search-spaces/import", {"text": SWEEP.replace("distribution: normal", "value: 3")})
    assert answer.status_code == 200
    assert answer.json() == {
        "format": "wandb",
        "search": {
            "space": [
                {"name": "units", "kind": "choice", "values": [16, 32]},
                {"name": "rate", "kind": "fixed", "value": 3},
            ],
            "algorithm": "random",
        },
        "summary": [
            {"name": "units", "takes": "16, 32", "when": ""},
            {"name": "rate", "takes": "always 3", "when": ""},
        ],
        "notes": [],
    }


def test_a_refusal_points_into_the_text(caller: Any) -> None:
    answer = caller.post("/search-spaces/import", {"text": SWEEP, "format": "wandb"})
    assert answer.status_code == 422
    assert answer["Content-Type"] == "application/problem+json"
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/text/parameters/rate/distribution"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"text": "x" * 100_001}, "/text"),
        ({"text": SWEEP, "format": "excel"}, "/format"),
        ({"text": SWEEP, "project": "p"}, "/project"),
        ({}, "/text"),
    ],
)
def test_a_body_of_another_shape_is_refused(caller: Any, body: Any, pointer: str) -> None:
    answer = caller.post("/search-spaces/import", body)
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


def test_a_space_is_exported_to_keras_tuner_and_imported_again(caller: Any) -> None:
    out = caller.post("/search-spaces/export", {"space": [UNITS]})
    assert out.status_code == 200
    config = out.json()["config"]
    assert config["space"][0]["class_name"] == "Int"
    back = caller.post("/search-spaces/import", {"text": json.dumps(config)})
    assert back.json()["search"]["space"] == [UNITS]


@pytest.mark.parametrize(
    ("space", "pointer"),
    [
        ([{**UNITS, "min": 65}], "/space/0/min"),
        (
            [UNITS, {"name": "x", "kind": "boolean", "when": {"name": "units", "in": [17]}}],
            "/space/1/when/in",
        ),
        ("units", "/space"),
    ],
)
def test_an_invalid_space_is_not_exported(caller: Any, space: Any, pointer: str) -> None:
    answer = caller.post("/search-spaces/export", {"space": space})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)


@pytest.mark.parametrize("route", ["import", "export"])
def test_credentials_and_the_scope_are_required(call: Callable[..., Any], route: str) -> None:
    reader = call(User.objects.create(username="vera"), "read")
    assert reader.post(f"/search-spaces/{route}", {}).status_code == 403
    anonymous = Client().post(f"/api/v1/search-spaces/{route}", {}, content_type="application/json")
    assert anonymous.status_code == 401


@pytest.mark.parametrize(
    "digits", ["0x" + "f" * 9000, "0b" + "1" * 50_000, "0" + "7" * 9000, "1" + ":59" * 9000]
)
def test_a_number_of_thousands_of_digits_is_refused_with_its_place(caller: Any, digits: str) -> None:
    text = f"method: random\nparameters: {{units: {{values: [{digits}]}}}}"
    answer = caller.post("/search-spaces/import", {"text": text})
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/text/parameters/units/values/0"]


def test_a_space_that_is_too_large_to_check_is_not_exported(
    caller: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Any) -> None:
        raise AssertionError("the conditions were checked")

    monkeypatch.setattr(search_spaces, "space_errors", refuse)
    parent = UNITS | {"max": 10**6, "step": 1}
    child = {"name": "layers", "kind": "int", "min": 1, "max": 3}
    when = {"name": "units", "in": list(range(16, 7016))}
    answer = caller.post("/search-spaces/export", {"space": [parent, child | {"when": [when] * 3}]})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/space")
    long = [UNITS | {"kind": "choice", "values": ["x" * 60_000] * 10}]
    answer = caller.post("/search-spaces/export", {"space": long})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/space")
