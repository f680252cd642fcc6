"""Authentication, errors, pagination, idempotency and rate limits of the REST API."""

import json
from typing import Any
from unittest.mock import Mock

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from tests.people import People
from tests.seeded import seed_search
from webapp.api import media
from webapp.json_text import read_json

pytestmark = pytest.mark.django_db


def test_an_unknown_address_is_a_problem_document(client: Client) -> None:
    answer = client.get("/api/v1/nothing/here")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_an_unsupported_method_is_405_with_the_allowed_methods(client: Client) -> None:
    answer = client.delete("/api/v1/me")
    assert answer.status_code == 405
    assert answer["Allow"] == "GET"
    assert answer.json()["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    "content",
    [b"{", b"", b"nonsense", b'{"name": NaN}', b'{"a": "\\ud800"}', b"[" * 5000, b"\xff"],
)
def test_invalid_json_is_400(people: People, call: Any, content: bytes) -> None:
    answer = call(people.member).raw("POST", "/models", content, "application/json")
    assert answer.status_code == (422 if content == b"" else 400)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "text/html"])
def test_a_body_of_another_type_is_415(people: People, call: Any, kind: str) -> None:
    answer = call(people.member).raw("POST", "/models", b'{"name": "a", "project": "yard"}', kind)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


def test_a_body_that_is_too_large_is_413(people: People, call: Any) -> None:
    body = b'{"name": "' + b"a" * 3_000_000 + b'"}'
    assert call(people.member).raw("POST", "/models", body, "application/json").status_code == 413


def test_problems_point_into_the_sent_body(people: People, call: Any) -> None:
    answer = call(people.member).post("/models", {"name": "No Slug", "colour": 1})
    pointers = {error["pointer"] for error in answer.json()["errors"]}
    assert answer.status_code == 422
    assert pointers == {"/name", "/project", "/colour"}


def test_a_body_of_many_wrong_fields_is_parsed_a_fixed_number_of_times(
    people: People, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = Mock(side_effect=read_json)
    monkeypatch.setattr(media, "read_json", parsed)
    answer = call(people.member).post("/models", {f"field{i}": 1 for i in range(300)})
    assert answer.status_code == 422
    assert len(answer.json()["errors"]) == 100
    assert parsed.call_count <= 2


def test_the_pointer_is_empty_for_a_body_that_is_not_an_object(people: People, call: Any) -> None:
    assert call(people.member).post("/models", [1]).json()["errors"][0]["pointer"] == ""


def test_lists_are_paginated_by_key(people: People, call: Any) -> None:
    caller = call(people.member)
    for name in "cab":
        assert caller.post("/models", {"name": name, "project": "yard"}).status_code == 201
    first = caller.get("/models", limit=2).json()
    second = caller.get("/models", limit=2, cursor=first["next"]).json()
    assert [model["name"] for model in first["items"] + second["items"]] == ["a", "b", "c"]
    assert second["next"] is None


def test_lists_can_be_sorted_in_descending_order(people: People, call: Any) -> None:
    caller = call(people.member)
    for name in "ab":
        caller.post("/models", {"name": name, "project": "yard"})
    page = caller.get("/models", limit=1, sort="-name").json()
    rest = caller.get("/models", limit=1, sort="-name", cursor=page["next"]).json()
    assert [page["items"][0]["name"], rest["items"][0]["name"]] == ["b", "a"]


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 201},
        {"limit": 0},
        {"sort": "project__created_by__password"},
        {"cursor": "x"},
        {"cursor": "W10"},
        {"cursor": "WyJuYW1lIiwgImEiLCAxZTk5OV0"},  # ["name", "a", 1e999] in Base64
    ],
)
def test_invalid_pagination_parameters_are_422(people: People, call: Any, query: dict[str, Any]) -> None:
    assert call(people.member).get("/models", **query).status_code == 422


def test_a_cursor_of_another_order_is_422(people: People, call: Any) -> None:
    caller = call(people.member)
    for name in "ab":
        caller.post("/models", {"name": name, "project": "yard"})
    cursor = caller.get("/models", limit=1).json()["next"]
    assert caller.get("/models", cursor=cursor, sort="created").status_code == 422


def test_too_many_requests_are_429_with_retry_after(people: People, call: Any, settings: Settings) -> None:
    settings.TRAINYARD_API_BURST = 3.0
    settings.TRAINYARD_API_RATE = 0.1
    caller = call(people.member)
    answers = [caller.get("/me") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert 1 <= int(answers[-1]["Retry-After"]) <= 10


def test_a_body_that_is_nested_too_deep_is_400(people: People, call: Any) -> None:
    deep = b"[" * 5000 + b"]" * 5000
    for path in ("/experiments/validate", "/experiments", "/datasets"):
        answer = call(people.member).raw(
            "POST", path, b'{"project": "vision", "spec": ' + deep + b"}", "application/json"
        )
        assert (answer.status_code, answer.json()["code"]) == (400, "malformed")
        assert "deeper than 64 levels" in answer.json()["detail"]


def test_a_nul_in_the_address_is_400_and_names_its_parameter(people: People, call: Any) -> None:
    caller = call(people.member)
    assert caller.get("/models/a%00b").status_code == 400
    answer = caller.get("/models", project="a\0b", limit="5")
    assert answer.status_code == 400
    assert "'project'" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": "a\0b", "project": "yard"}, "/name"),
        ({"name": "m", "labels": [{"x": 1}, {"y": "\0"}]}, "/labels/1/y"),
        ({"name": "m", "a\0": 1}, "/a\0"),
        ("\0", ""),
    ],
)
def test_a_nul_in_a_text_is_refused_with_its_field(
    people: People, call: Any, body: Any, pointer: str
) -> None:
    answer = call(people.member).raw("POST", "/models", json.dumps(body).encode(), "application/json")
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"pointer": pointer, "message": "has a NUL character"}]


def test_an_escape_that_only_looks_like_a_nul_is_accepted(people: People, call: Any) -> None:
    body = {"name": "m", "project": "yard", "description": "write \\u0000 in JSON"}
    assert call(people.member).post("/models", body).status_code == 201


def test_authentication_takes_two_queries(
    people: People, call: Any, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    caller = call(people.member)
    caller.get("/me")
    with django_assert_max_num_queries(2):
        caller.get("/me")


def test_a_poll_of_an_ended_search_takes_few_queries_and_counts_no_executions(
    people: People, call: Any, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    search = seed_search(people.project, by=people.owner, trials=12)
    caller = call(people.member)
    caller.get("/me")
    with django_assert_max_num_queries(9) as asked:
        answer = caller.get(f"/jobs/{search.pk}").json()
    assert answer["progress"]["done"] == answer["progress"]["total"] == 24
    assert answer["results"]["best_trial"]["score"] == max(t.score for t in search.trials.all() if t.score)
    assert not [query["sql"] for query in asked.captured_queries if "jobs_execution" in query["sql"]]


def test_the_document_is_public_and_describes_errors(client: Client) -> None:
    document = client.get("/api/v1/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert "application/problem+json" in document["paths"]["/api/v1/me"]["get"]["responses"]["401"]["content"]


def test_the_docs_page_loads_nothing_from_other_hosts(client: Client) -> None:
    page = client.get("/api/v1/docs").content.decode()
    assert "swagger-ui-bundle.js" in page
    assert "http://" not in page
    assert "https://" not in page
