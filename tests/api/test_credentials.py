"""Who may call the REST API: tokens, sessions and scopes."""

from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from django.test import Client
from django.utils import timezone

from jobs.actions.people import people as people_actions
from jobs.errors import Conflict
from tests.people import PASSWORD, People, browser_of

pytestmark = pytest.mark.django_db


def test_a_call_without_credentials_is_401(client: Client) -> None:
    answer = client.get("/api/v1/me")
    assert answer.status_code == 401
    assert answer["Content-Type"] == "application/problem+json"
    assert answer["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("header", ["Bearer ty_wrong", "Bearer", "Basic abc", "", "Bearer \udcff"])
def test_bad_credentials_are_401(client: Client, header: str) -> None:
    assert client.get("/api/v1/me", headers={"Authorization": header}).status_code == 401


def test_a_key_of_a_request_without_credentials_is_not_checked(client: Client) -> None:
    answer = client.post("/api/v1/projects", {}, headers={"Idempotency-Key": "k" * 300})
    assert answer.status_code == 401


def test_basic_credentials_of_a_proxy_do_not_hide_a_session(people: People) -> None:
    answer = browser_of(people.member).get("/api/v1/me", headers={"Authorization": "Basic abc"})
    assert (answer.status_code, answer.json()["user"]) == (200, "member")


def test_a_change_of_two_fields_of_an_account_is_made_as_a_whole_or_not_at_all(
    people: People, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people_actions, "set_admin", Mock(side_effect=Conflict("not now")))
    caller = call(people.administrator)
    answer = caller.send("patch", "/users/viewer", {"active": False, "admin": False})
    assert answer.status_code == 409
    people.viewer.refresh_from_db()
    assert people.viewer.is_active


def test_an_expired_token_is_401(people: People, call: Any) -> None:
    caller = call(people.member)
    caller.token.expires = timezone.now() - timedelta(seconds=1)
    caller.token.save()
    assert caller.get("/me").status_code == 401


def test_a_token_of_a_deactivated_user_is_401(people: People, call: Any) -> None:
    people.member.is_active = False
    people.member.save()
    assert call(people.member).get("/me").status_code == 401


def test_a_session_may_read_but_needs_csrf_to_write(people: People) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(people.member)
    body = {"name": "digits", "project": "yard"}
    assert browser.get("/api/v1/me").json()["user"] == "member"
    refused = browser.post("/api/v1/models", body, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (401, "csrf_failed")


def test_a_session_with_csrf_may_write(people: People) -> None:
    browser = browser_of(people.member)
    answer = browser.post("/api/v1/models", {"name": "digits", "project": "yard"}, "application/json")
    assert answer.status_code == 201
    assert PASSWORD not in answer.content.decode()


@pytest.mark.parametrize(("scopes", "status"), [(("read",), 403), (("write",), 201)])
def test_writing_needs_its_scope(people: People, call: Any, scopes: tuple[str, ...], status: int) -> None:
    answer = call(people.member, *scopes).post("/models", {"name": "digits", "project": "yard"})
    assert answer.status_code == status


def test_a_refusal_names_the_missing_scope(people: People, call: Any) -> None:
    answer = call(people.member, "write").get("/models")
    assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")
    assert "read" in answer.json()["detail"]
