"""Artifacts, releases and gates over REST."""

import time
from typing import Any

import pytest

from jobs.models import ApiToken, Endpoint, User
from jobs.store import store
from tests.api.test_registry_api import gate, make_service
from tests.registry.conftest import Yard


def test_an_artifact_is_sent_as_an_attachment(installation: Yard, call: Any) -> None:
    version = installation.version()
    answer = call(installation.viewer).get(f"/artifacts/{version.artifact_id}")
    assert answer["Content-Disposition"].startswith("attachment")
    assert answer["Content-Type"] == "application/octet-stream"
    assert b"".join(answer.streaming_content) == store().path(version.artifact_id).read_bytes()


def test_the_prediction_servers_get_released_bytes_only(installation: Yard, call: Any) -> None:
    live, waiting = installation.live(), installation.version()
    service = call(make_service(), "serve")
    assert service.get(f"/artifacts/{live.artifact_id}").status_code == 200
    assert service.get(f"/artifacts/{waiting.artifact_id}").status_code == 404


def test_aliases_are_moved_and_deleted(installation: Yard, call: Any) -> None:
    first, second = installation.version(), installation.version()
    caller = call(installation.member)
    for version in (first, second):
        answer = caller.send("put", "/models/digits/aliases/best", {"version": version.number})
        assert answer.json() == {"alias": "best", "version": version.number}
    assert caller.get("/models/digits").json()["aliases"] == {"best": 2}
    assert caller.send("delete", "/models/digits/aliases/best").status_code == 204
    assert caller.send("delete", "/models/digits/aliases/best").status_code == 404
    assert caller.send("put", "/models/digits/aliases/production", {"version": 1}).status_code == 422
    assert caller.send("put", "/models/digits/aliases/best", {"version": 99}).status_code == 422


def test_model_names_are_unique_in_the_installation(installation: Yard, call: Any) -> None:
    answer = call(installation.owner).post("/models", {"name": "digits", "project": "vision"})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert Endpoint.objects.count() == 1


def test_releases_are_polled_by_sequence(installation: Yard, call: Any) -> None:
    installation.live()
    service = call(make_service(), "serve")
    first = service.get("/serving/releases").json()
    assert [item["release"]["generation"] for item in first["releases"]] == [1]
    nothing = service.get("/serving/releases", after=first["sequence"], wait=0.1).json()
    assert nothing == {"sequence": first["sequence"], "releases": []}
    installation.live()
    second = service.get("/serving/releases", after=first["sequence"], wait=5).json()
    assert [item["release"]["generation"] for item in second["releases"]] == [2]


def test_a_long_poll_ends_after_the_requested_time(installation: Yard, call: Any) -> None:
    sequence = installation.live().releases.get().pk
    began = time.monotonic()
    call(make_service(), "serve").get("/serving/releases", after=sequence, wait=0.5)
    assert 0.4 < time.monotonic() - began < 20


def test_a_token_without_the_serve_scope_gets_no_releases(installation: Yard, call: Any) -> None:
    assert call(installation.owner, "read", "write").get("/serving/releases").status_code == 403
    assert ApiToken.objects.count() == 1


def test_only_administrators_verify_the_whole_chain(installation: Yard, call: Any) -> None:
    installation.live()
    assert call(installation.owner).get("/audit/verify").status_code == 403
    admin = User.objects.create_superuser("root")
    assert call(admin).get("/audit/verify").json()["holds"] is True


def test_a_description_that_was_changed_meanwhile_is_not_overwritten(installation: Yard, call: Any) -> None:
    caller = call(installation.member)
    first = caller.get("/models/digits")["ETag"]
    saved = caller.send("patch", "/models/digits", {"description": "Mine"}, **{"If-Match": first})
    assert (saved.status_code, saved.json()["description"]) == (200, "Mine")
    assert saved["ETag"] == caller.get("/models/digits")["ETag"] != first
    late = caller.send("patch", "/models/digits", {"description": "Theirs"}, **{"If-Match": first})
    assert (late.status_code, late.json()["code"]) == (412, "stale_etag")
    assert caller.get("/models/digits").json()["description"] == "Mine"
    unchecked = caller.send("patch", "/models/digits", {"description": "Any"})
    assert (unchecked.status_code, unchecked.json()["description"]) == (200, "Any")


def test_gates_are_read_changed_and_guarded_by_their_etag(installation: Yard, call: Any) -> None:
    first = call(installation.member).get("/models/digits/gates")
    assert (first.json()["revision"], first["ETag"], first.json()["changed_by"]) == (0, '"0"', None)
    assert first.json()["rules"]["tolerance"] == 0.01
    approver, body = (
        call(installation.approver),
        {"rules": {"metric": "roc_auc", "tolerance": 0.05}, "comment": "AUC"},
    )
    saved = approver.send("put", "/models/digits/gates", body, **{"If-Match": '"0"'})
    assert (saved.status_code, saved["ETag"]) == (200, '"1"')
    assert saved.json()["differences"] == ["metric: the objective → roc_auc", "tolerance: 0.01 → 0.05"]
    stale = approver.send("put", "/models/digits/gates", body, **{"If-Match": '"0"'})
    assert (stale.status_code, stale.json()["code"]) == (412, "stale_etag")
    back = approver.send("put", "/models/digits/gates", {"rules": saved.json()["rules"]})
    assert (back.status_code, back.json()["revision"]) == (200, 1)


def test_only_an_approver_with_the_scope_changes_gates(installation: Yard, call: Any) -> None:
    body = {"rules": {"tolerance": 0.5}}
    for caller in (call(installation.member), call(installation.approver, "read", "write")):
        assert caller.send("put", "/models/digits/gates", body).status_code == 403
    assert call(installation.stranger).get("/models/digits/gates").status_code == 404


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"rules": {"metric": "auroc"}}, "/rules/metric"),
        ({"rules": {"floors": [{"metric": "accuracy"}]}}, "/rules/floors/0/limit"),
        ({"rules": {"slices": [{"column": "a", "value": "b", "min_rows": 0}]}}, "/rules/slices/0/min_rows"),
        ({"rules": {"delta": 0.1}}, "/rules/delta"),
        ({"comment": "x"}, "/rules"),
    ],
)
def test_wrong_gates_are_refused_at_their_field(
    installation: Yard, call: Any, body: Any, pointer: str
) -> None:
    answer = call(installation.approver).send("put", "/models/digits/gates", body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_a_request_shows_its_rules_and_what_to_do_about_a_failed_gate(installation: Yard, call: Any) -> None:
    call(installation.approver).send("put", "/models/digits/gates", {"rules": {"tolerance": 0.02}})
    asked = call(installation.member).post(
        "/promotions", {"model": "digits", "version": installation.version().number}
    )
    failed = {
        "name": "better_than_baseline",
        "state": "failed",
        "value": 0.8,
        "limit": 0.81,
        "metric": "accuracy",
    }
    gate(installation, asked.json()["id"], {"gates": [failed]})
    promotion = call(installation.member).get(f"/promotions/{asked.json()['id']}").json()
    assert (promotion["gates_revision"], promotion["gates_changed_by"]) == (1, "approver")
    assert promotion["gates"][0]["metric"] == "accuracy"
    assert "ask an approver to change the gates" in promotion["gates"][0]["next_step"]
