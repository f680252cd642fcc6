"""Token rights: no token gains scopes, time or endpoints, and prediction clients do nothing else."""

import importlib
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.utils import timezone

from jobs.actions.people import service_tokens, tokens
from jobs.models import ApiToken, User
from tests.api.conftest import Caller
from tests.api.test_registry_api import make_service
from tests.people import People
from tests.registry.conftest import Yard

# A whole run of the tests takes more than an hour.
SOON = timezone.now() + timedelta(days=1)


def created_body(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 201, answer.content
    body: dict[str, Any] = answer.json()
    return body


def test_a_token_creates_none_with_more_scopes(people: People) -> None:
    refused = Caller(people.member, ("read", "write")).post("/tokens", {"scopes": ["read", "approve"]})
    assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing")


def test_a_token_creates_none_that_outlives_it(people: People) -> None:
    caller = Caller(people.member, ("read", "write"))
    ApiToken.objects.update(expires=SOON)
    later = (SOON + timedelta(seconds=1)).isoformat()
    refused = caller.post("/tokens", {"scopes": ["read"], "expires": later})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/expires")
    child = created_body(caller.post("/tokens", {"scopes": ["read"]}))
    assert ApiToken.objects.get(pk=child["id"]).expires == SOON
    assert child["parent"] == caller.token.pk


def test_a_revoked_token_ends_the_ones_it_created(people: People) -> None:
    caller = Caller(people.member, ("read", "write"))
    child = created_body(caller.post("/tokens", {"scopes": ["read", "write"]}))["token"]
    parent = tokens.authenticate(child)
    _, grandchild = tokens.create(people.member, by=people.member, scopes=["read"], parent=parent)
    tokens.revoke(caller.token, by=people.member)
    assert tokens.authenticate(child) is None
    assert tokens.authenticate(grandchild) is None


def test_an_administrator_needs_the_scope_to_revoke_the_tokens_of_others(people: People) -> None:
    other, _ = tokens.create(people.member, by=people.member, scopes=["read"])
    path = f"/tokens/{other.pk}"
    assert Caller(people.administrator, ("write",)).send("delete", path).status_code == 404
    assert Caller(people.administrator, ("write", "admin")).send("delete", path).status_code == 204


def test_a_token_for_people_makes_no_administrator(people: People) -> None:
    caller = Caller(people.administrator, ("read", "admin"))
    refused = caller.post("/users", {"user": "eve", "admin": True})
    assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing")
    assert caller.send("patch", "/users/member", {"admin": True}).status_code == 403
    assert not User.objects.filter(username="eve").exists()
    assert caller.post("/users", {"user": "bob"}).status_code == 201
    full = Caller(people.administrator, ("read", "write", "approve", "admin"))
    assert full.post("/users", {"user": "eve", "admin": True}).status_code == 201


def test_a_token_for_predictions_downloads_nothing_and_rolls_nothing_back(installation: Yard) -> None:
    version = installation.live()
    installation.live()
    client = Caller(installation.approver, ("predict",))
    assert client.get(f"/artifacts/{version.artifact_id}").status_code == 403
    assert client.get("/serving/releases").status_code == 403
    assert client.post("/models/digits/rollback", {"reason": "x"}).status_code == 403
    server = Caller(make_service(), ("serve",))
    assert server.post("/models/digits/rollback", {"reason": "x"}).status_code == 403
    assert server.get("/serving/access").status_code == 403
    assert server.get(f"/artifacts/{version.artifact_id}").status_code == 200
    assert server.get(f"/artifacts/{installation.version().artifact_id}").status_code == 404


def test_a_token_asks_the_endpoints_of_its_projects_or_those_it_names(installation: Yard) -> None:
    assert Caller(installation.member, ("predict",)).get("/serving/access").json() == {
        "endpoints": ["digits"],
        "expires": None,
        "warning": None,
        "metrics": False,
    }
    administrator = User.objects.create_user("monitor", is_superuser=True)
    metrics = Caller(administrator, ("metrics",)).get("/serving/access").json()
    assert metrics == {"endpoints": None, "expires": None, "warning": None, "metrics": True}
    outsider = User.objects.create_user("outsider")
    assert Caller(outsider, ("predict",)).get("/serving/access").json()["endpoints"] == []
    caller = Caller(installation.member, ("write", "predict"))
    unknown = caller.post("/tokens", {"scopes": ["predict"], "endpoints": ["digits", "other"]})
    assert (unknown.status_code, unknown.json()["errors"][0]["pointer"]) == (422, "/endpoints/1")
    useless = caller.post("/tokens", {"scopes": ["write"], "endpoints": ["digits"]})
    assert (useless.status_code, useless.json()["errors"][0]["pointer"]) == (422, "/endpoints")
    child = created_body(caller.post("/tokens", {"scopes": ["predict", "write"], "endpoints": ["digits"]}))
    parent = ApiToken.objects.get(pk=child["id"])
    grandchild, _ = tokens.create(
        installation.member, by=installation.member, scopes=["predict"], parent=parent
    )
    assert grandchild.endpoints == ["digits"]


@pytest.mark.parametrize(("days", "status"), [(1, 200), (-1, 403)])
def test_a_token_from_before_the_split_predicts_until_its_time_ends(
    installation: Yard, days: int, status: int
) -> None:
    until = timezone.now() + timedelta(days=days)
    caller = Caller(installation.member, ())
    ApiToken.objects.update(predicts_until=until)
    answer = caller.get("/serving/access")
    assert answer.status_code == caller.get("/me").status_code == status
    assert caller.get("/jobs").status_code == 403
    if status == 200:
        assert "use one with the scope predict" in answer.json()["warning"]


def test_the_migration_keeps_clients_working_for_90_days(installation: Yard) -> None:
    old, other = Caller(installation.member, ("read", "serve")), Caller(installation.member, ("read",))
    service_tokens.create_credential("b", by=None)
    importlib.import_module("jobs.migrations.0019_tokens").keep_clients_working(apps, None)
    old.token.refresh_from_db()
    assert old.token.predicts_until is not None
    assert timedelta(days=89) < old.token.predicts_until - timezone.now() <= timedelta(days=90)
    assert not ApiToken.objects.exclude(pk=old.token.pk).exclude(predicts_until=None).exists()
    assert other.token.pk
