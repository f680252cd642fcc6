import pytest
from django.test import Client

pytestmark = pytest.mark.django_db


def test_a_call_without_credentials_is_401(client: Client) -> None:
    answer = client.get("/api/v1/me")
    assert answer.status_code == 401
    assert answer["Content-Type"] == "application/problem+json"
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_an_unknown_address_is_a_problem_document(client: Client) -> None:
    answer = client.get("/api/v1/nothing/here")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_a_method_that_is_not_known_is_405_and_names_those_that_are(client: Client) -> None:
    answer = client.delete("/api/v1/me")
    assert answer.status_code == 405
    assert answer["Allow"] == "GET"
    assert answer.json()["code"] == "method_not_allowed"


def test_the_document_is_public_and_declares_problems(client: Client) -> None:
    document = client.get("/api/v1/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert "application/problem+json" in document["paths"]["/api/v1/me"]["get"]["responses"]["401"]["content"]


def test_the_docs_page_loads_nothing_from_elsewhere(client: Client) -> None:
    page = client.get("/api/v1/docs").content.decode()
    assert "swagger-ui-bundle.js" in page
    assert "http://" not in page
    assert "https://" not in page
