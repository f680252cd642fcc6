"""Repeated requests with a key have no further effect."""

import io
from typing import Any

import pytest
from django.db import IntegrityError
from django.db.models import QuerySet
from django.test import Client
from pytest_django import Settings

from jobs.models import IdempotencyKey, RegisteredModel
from tests.people import People

pytestmark = pytest.mark.django_db


def test_a_repeated_post_has_no_further_effect(people: People, call: Any) -> None:
    caller, body = call(people.member), {"name": "digits", "project": "yard"}
    first = caller.post("/models", body, **{"Idempotency-Key": "k1"})
    second = caller.post("/models", body, **{"Idempotency-Key": "k1"})
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert second["Idempotency-Replayed"] == "true"
    assert RegisteredModel.objects.count() == 1


def test_a_key_with_another_body_is_422(people: People, call: Any) -> None:
    caller = call(people.member)
    caller.post("/models", {"name": "a", "project": "yard"}, **{"Idempotency-Key": "k1"})
    other = caller.post("/models", {"name": "b", "project": "yard"}, **{"Idempotency-Key": "k1"})
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")


def test_a_form_sent_to_a_json_route_with_a_key_is_415(people: People, call: Any) -> None:
    form = b'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\na\r\n--x--\r\n'
    kind = "multipart/form-data; boundary=x"
    answer = call(people.member).raw("POST", "/promotions", form, kind, **{"Idempotency-Key": "k1"})
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


def test_a_key_whose_first_request_is_running_is_409(people: People, call: Any) -> None:
    caller, body = call(people.member), {"name": "a", "project": "yard"}
    caller.post("/models", body, **{"Idempotency-Key": "k1"})
    IdempotencyKey.objects.update(status=None)
    answer = caller.post("/models", body, **{"Idempotency-Key": "k1"})
    assert (answer.status_code, answer.json()["code"]) == (409, "in_flight")


def test_the_key_of_a_refused_request_can_be_used_again(people: People, call: Any) -> None:
    caller = call(people.member)
    refused = caller.post("/models", {"name": "a", "project": "nowhere"}, **{"Idempotency-Key": "k1"})
    assert refused.status_code == 404
    assert not IdempotencyKey.objects.exists()


def test_a_key_that_a_concurrent_request_takes_and_releases_is_409(
    people: People, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(_: Any, **__: Any) -> None:
        raise IntegrityError("UNIQUE constraint failed")

    caller = call(people.member)
    monkeypatch.setattr(QuerySet, "create", taken)  # and the row is gone when it is read
    answer = caller.post("/models", {"name": "a", "project": "yard"}, **{"Idempotency-Key": "k1"})
    assert (answer.status_code, answer.json()["code"]) == (409, "in_flight")


def test_a_token_with_fewer_scopes_replays_no_response(people: People, call: Any) -> None:
    body = {"name": "a", "project": "yard"}
    assert call(people.member).post("/models", body, **{"Idempotency-Key": "k1"}).status_code == 201
    reader = call(people.member, "read").post("/models", body, **{"Idempotency-Key": "k1"})
    assert (reader.status_code, reader.json()["code"]) == (403, "scope_missing")


def test_the_stored_response_to_a_repeated_request_has_neither_the_link_nor_the_key_in_clear(
    people: People, call: Any
) -> None:
    caller, headers = call(people.administrator), {"Idempotency-Key": "a-key-of-the-client"}
    first = caller.post("/users", {"user": "grace"}, **headers)
    second = caller.post("/users", {"user": "grace"}, **headers)
    assert second.json() == first.json()
    stored = str(IdempotencyKey.objects.values())
    assert first.json()["login_link"].rsplit("/", 1)[1] not in stored
    assert headers["Idempotency-Key"] not in stored


def test_a_stored_response_of_another_secret_key_is_409(
    people: People, call: Any, settings: Settings
) -> None:
    caller, body = call(people.member), {"name": "a", "project": "yard"}
    caller.post("/models", body, **{"Idempotency-Key": "k1"})
    settings.SECRET_KEY = "x" * 60
    assert caller.post("/models", body, **{"Idempotency-Key": "k1"}).status_code == 409


def test_a_key_is_bound_to_the_query_and_stored_as_a_hash(people: People, call: Any) -> None:
    caller, body = call(people.member), {"name": "a", "project": "yard"}
    assert caller.post("/models", body, **{"Idempotency-Key": "my-key"}).status_code == 201
    other = caller.post("/models?x=my-query", body, **{"Idempotency-Key": "my-key"})
    assert (other.status_code, other.get("Idempotency-Replayed")) == (409, None)
    assert "my-" not in str(list(IdempotencyKey.objects.values("key", "route", "body_digest")))


def test_two_people_may_use_the_same_key(people: People, call: Any) -> None:
    for user, name in ((people.member, "a"), (people.trainer, "b")):
        answer = call(user).post("/models", {"name": name, "project": "yard"}, **{"Idempotency-Key": "k1"})
        assert answer.status_code == 201


def test_a_file_sent_twice_with_one_key_makes_one_version(installation: Any, call: Any) -> None:
    caller = call(installation.member)

    def send() -> Any:
        file = io.BytesIO(keras_archive())
        file.name = "m.keras"
        headers = {"Authorization": f"Bearer {caller.secret}", "Idempotency-Key": "k1"}
        return Client().post("/api/v1/models/digits/versions", {"file": file}, headers=headers)

    first, second = send(), send()
    assert first.status_code == 201, first.content
    assert first.json() == second.json()
    assert installation.model.versions.count() == 1


def keras_archive() -> bytes:
    import zipfile

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in ("config.json", "metadata.json", "model.weights.h5"):
            archive.writestr(zipfile.ZipInfo(name), "{}")
    return buffer.getvalue()
