"""Models, versions, promotions, releases and artifacts over REST."""

import time
from typing import Any

import pytest

from jobs.actions.registry import registration
from jobs.models import ApiToken, Endpoint, ModelVersion, PromotionRequest, User
from jobs.store import store
from tests.api.test_core import keras_archive
from tests.factories import make_experiment, make_job, make_job_artifact
from tests.registry.conftest import GOOD_GATES, OPEN_GATES, Yard, judge


def gate(yard: Yard, number: int, result: dict[str, Any] = GOOD_GATES) -> None:
    judge(PromotionRequest.objects.get(pk=number), result)


def test_a_version_is_requested_approved_released_and_rolled_back(yard: Yard, call: Any) -> None:
    member, approver, service = call(yard.member), call(yard.approver), call(make_service(), "serve")
    first, second = yard.version(), yard.version()
    for version in (first, second):
        asked = member.post(
            "/promotions", {"model": "digits", "version": version.number, "stage": "production"}
        )
        assert asked.status_code == 201, asked.content
        assert asked.json()["state"] == "gating"
        gate(yard, asked.json()["id"])
        refused = member.post(f"/promotions/{asked.json()['id']}/approve", {})
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        decided = approver.post(f"/promotions/{asked.json()['id']}/approve", {"comment": "good"})
        assert (decided.status_code, decided.json()["state"]) == (200, "approved")
    reported = service.post("/serving/reports", {"replica": "a", "model": "digits", "generation": 2})
    assert reported.status_code == 204
    assert {item["state"] for item in member.get("/promotions").json()["items"]} == {"released"}
    back = approver.post("/models/digits/rollback", {"reason": "wrong sevens"})
    assert (back.status_code, back.json()) == (202, {"generation": 3, "version": 1})
    endpoint = member.get("/endpoints/digits").json()
    assert (endpoint["production"], endpoint["generation"], endpoint["replicas"][0]["live"]) == (1, 3, True)
    kinds = [item["kind"] for item in member.get("/models/digits/history").json()["items"]]
    assert kinds == ["rollback", "promote", "promote"]


def make_service() -> User:
    return User.objects.get_or_create(username="trainyard", defaults={"is_service": True})[0]


def test_a_member_cannot_approve_nor_roll_back(yard: Yard, call: Any) -> None:
    yard.live()
    yard.live()
    caller = call(yard.member)
    assert caller.post("/models/digits/rollback", {"reason": "x"}).status_code == 403
    assert call(yard.approver, "write").post("/models/digits/rollback", {"reason": "x"}).status_code == 403


def test_a_second_approval_is_stale(yard: Yard, call: Any) -> None:
    promotion = yard.pending()
    path = f"/promotions/{promotion.pk}/approve"
    assert call(yard.approver).post(path, {}).status_code == 200
    again = call(yard.second_approver).post(path, {})
    assert (again.status_code, again.json()["code"]) == (409, "stale_state")


def test_a_rollback_sent_twice_with_one_key_is_done_once(yard: Yard, call: Any) -> None:
    for _ in range(3):
        yard.live()
    caller = call(yard.approver)
    answers = [
        caller.post("/models/digits/rollback", {"reason": "x"}, **{"Idempotency-Key": "k1"}).json()
        for _ in range(2)
    ]
    assert answers == [{"generation": 4, "version": 2}] * 2


def test_open_gates_are_409_until_accepted(yard: Yard, call: Any) -> None:
    promotion = yard.request()
    gate(yard, promotion.pk, OPEN_GATES)
    caller, path = call(yard.approver), f"/promotions/{promotion.pk}/approve"
    assert caller.post(path, {}).json()["code"] == "gates_open"
    assert caller.post(path, {"accept": ["test_metric"]}).status_code == 200


def test_canary_is_422_at_its_field(yard: Yard, call: Any) -> None:
    version = yard.version()
    body = {"model": "digits", "version": version.number, "stage": "canary"}
    answer = call(yard.member).post("/promotions", body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/stage")


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, []),
        ({"canary": None, "traffic": {"production": 100}}, []),
        ({"canary": 1, "traffic": {"production": 90, "canary": 10}}, ["/canary", "/traffic"]),
        ({"shadow": 1}, ["/shadow"]),
    ],
)
def test_traffic_other_than_all_to_production_is_not_available_yet(
    yard: Yard, call: Any, body: dict[str, Any], pointers: list[str]
) -> None:
    yard.live()
    answer = call(yard.approver).send("patch", "/endpoints/digits", body)
    assert answer.status_code == (422 if pointers else 200)
    errors = answer.json().get("errors", [])
    assert [error["pointer"] for error in errors] == pointers
    assert all("not available yet" in error["message"] for error in errors)
    assert call(yard.member).send("patch", "/endpoints/digits", body).status_code == 403


def test_rollback_without_a_target_is_409(yard: Yard, call: Any) -> None:
    yard.live()
    assert call(yard.approver).post("/models/digits/rollback", {"reason": "x"}).status_code == 409


PATHS = (
    "/models/digits",
    "/models/digits/versions",
    "/models/digits/versions/1",
    "/models/digits/history",
    "/endpoints/digits",
)


@pytest.mark.parametrize("path", PATHS)
def test_a_stranger_gets_404(yard: Yard, call: Any, path: str) -> None:
    yard.live()
    assert call(yard.viewer).get(path).status_code == 200
    assert call(yard.stranger).get(path).status_code == 404


def test_a_stranger_sees_empty_lists(yard: Yard, call: Any) -> None:
    promotion = yard.pending()
    caller = call(yard.stranger)
    for path in ("/models", "/promotions", "/endpoints", "/audit"):
        assert caller.get(path).json()["items"] == []
    assert caller.get(f"/promotions/{promotion.pk}").status_code == 404
    for verb in ("approve", "reject", "withdraw", "comment"):
        assert caller.post(f"/promotions/{promotion.pk}/{verb}", {"comment": "x"}).status_code == 404


def test_a_jobs_model_becomes_a_version(yard: Yard, call: Any) -> None:
    experiment = make_experiment(project=yard.project, by=yard.member)
    results = {"metrics": {"test": {"accuracy": 0.97}}}
    job = make_job(experiment=experiment, kind="train", by=yard.member, results=results)
    made = make_job_artifact(job)
    answer = call(yard.member).post("/models/digits/versions", {"artifact": made.artifact_id})
    assert answer.status_code == 201, answer.content
    version = answer.json()
    assert (version["state"], version["metrics"]) == ("validating", {"test": {"accuracy": 0.97}})
    assert version["lineage"]["job"] == job.pk
    assert version["lineage"]["revision"] == 1


def test_an_artifact_that_is_not_a_model_is_422(yard: Yard, call: Any) -> None:
    job = make_job(project=yard.project, kind="train", by=yard.member)
    report = make_job_artifact(job, role="report", name="report.json")
    answer = call(yard.member).post("/models/digits/versions", {"artifact": report.artifact_id})
    assert answer.status_code == 422
    assert "is the report of a job" in answer.json()["detail"]


def test_an_artifact_of_others_is_404(yard: Yard, call: Any) -> None:
    job = make_job(project=yard.project, kind="train", by=yard.member)
    made = make_job_artifact(job)
    caller = call(yard.stranger)
    assert caller.get(f"/artifacts/{made.artifact_id}").status_code == 404


def test_an_upload_must_be_a_keras_archive(yard: Yard, call: Any) -> None:
    head = b'Content-Disposition: form-data; name="file"; filename="m.keras"'
    body = b"--b\r\n" + head + b"\r\n\r\nnot a zip\r\n--b--\r\n"
    answer = call(yard.member).raw("POST", "/models/digits/versions", body, "multipart/form-data; boundary=b")
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/file")
    assert "save the model with model.save" in answer.json()["errors"][0]["message"]
    assert keras_archive()[:2] == b"PK"


def test_a_refused_version_shows_the_reason_and_no_code_of_the_worker(yard: Yard, call: Any) -> None:
    version = yard.version()
    ModelVersion.objects.update(state="validating")
    error = {
        "code": "bad_model",
        "message": "it is no model",
        "traceback": 'File "/srv/untrusted.py", line 7',
    }
    registration.mark_invalid(version.pk, error)
    shown = call(yard.member).get(f"/models/digits/versions/{version.number}").json()["error"]
    assert shown == {"code": "bad_model", "message": "it is no model"}


def test_an_artifact_is_sent_as_an_attachment(yard: Yard, call: Any) -> None:
    version = yard.version()
    answer = call(yard.viewer).get(f"/artifacts/{version.artifact_id}")
    assert answer["Content-Disposition"].startswith("attachment")
    assert answer["Content-Type"] == "application/octet-stream"
    assert b"".join(answer.streaming_content) == store().path(version.artifact_id).read_bytes()


def test_the_prediction_servers_get_released_bytes_only(yard: Yard, call: Any) -> None:
    live, waiting = yard.live(), yard.version()
    service = call(make_service(), "serve")
    assert service.get(f"/artifacts/{live.artifact_id}").status_code == 200
    assert service.get(f"/artifacts/{waiting.artifact_id}").status_code == 404


def test_aliases_are_moved_and_deleted(yard: Yard, call: Any) -> None:
    first, second = yard.version(), yard.version()
    caller = call(yard.member)
    for version in (first, second):
        answer = caller.send("put", "/models/digits/aliases/best", {"version": version.number})
        assert answer.json() == {"alias": "best", "version": version.number}
    assert caller.get("/models/digits").json()["aliases"] == {"best": 2}
    assert caller.send("delete", "/models/digits/aliases/best").status_code == 204
    assert caller.send("delete", "/models/digits/aliases/best").status_code == 404
    assert caller.send("put", "/models/digits/aliases/production", {"version": 1}).status_code == 422
    assert caller.send("put", "/models/digits/aliases/best", {"version": 99}).status_code == 422


def test_model_names_are_unique_in_the_installation(yard: Yard, call: Any) -> None:
    answer = call(yard.owner).post("/models", {"name": "digits", "project": "vision"})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert Endpoint.objects.count() == 1


def test_releases_are_polled_by_sequence(yard: Yard, call: Any) -> None:
    yard.live()
    service = call(make_service(), "serve")
    first = service.get("/serving/releases").json()
    assert [item["release"]["generation"] for item in first["releases"]] == [1]
    nothing = service.get("/serving/releases", after=first["sequence"], wait=0.1).json()
    assert nothing == {"sequence": first["sequence"], "releases": []}
    yard.live()
    second = service.get("/serving/releases", after=first["sequence"], wait=5).json()
    assert [item["release"]["generation"] for item in second["releases"]] == [2]


def test_a_long_poll_ends_after_the_requested_time(yard: Yard, call: Any) -> None:
    sequence = yard.live().releases.get().pk
    began = time.monotonic()
    call(make_service(), "serve").get("/serving/releases", after=sequence, wait=0.5)
    assert 0.4 < time.monotonic() - began < 20


def test_a_token_without_the_serve_scope_gets_no_releases(yard: Yard, call: Any) -> None:
    assert call(yard.owner, "read", "write").get("/serving/releases").status_code == 403
    assert ApiToken.objects.count() == 1


def test_only_administrators_verify_the_whole_chain(yard: Yard, call: Any) -> None:
    yard.live()
    assert call(yard.owner).get("/audit/verify").status_code == 403
    admin = User.objects.create_superuser("root")
    assert call(admin).get("/audit/verify").json()["holds"] is True


def test_a_description_that_was_changed_meanwhile_is_not_overwritten(yard: Yard, call: Any) -> None:
    caller = call(yard.member)
    first = caller.get("/models/digits")["ETag"]
    saved = caller.send("patch", "/models/digits", {"description": "Mine"}, **{"If-Match": first})
    assert (saved.status_code, saved.json()["description"]) == (200, "Mine")
    assert saved["ETag"] == caller.get("/models/digits")["ETag"] != first
    late = caller.send("patch", "/models/digits", {"description": "Theirs"}, **{"If-Match": first})
    assert (late.status_code, late.json()["code"]) == (412, "stale_etag")
    assert caller.get("/models/digits").json()["description"] == "Mine"
    unchecked = caller.send("patch", "/models/digits", {"description": "Any"})
    assert (unchecked.status_code, unchecked.json()["description"]) == (200, "Any")


def test_gates_are_read_changed_and_guarded_by_their_etag(yard: Yard, call: Any) -> None:
    first = call(yard.member).get("/models/digits/gates")
    assert (first.json()["revision"], first["ETag"], first.json()["changed_by"]) == (0, '"0"', None)
    assert first.json()["rules"]["tolerance"] == 0.01
    approver, body = (
        call(yard.approver),
        {"rules": {"metric": "roc_auc", "tolerance": 0.05}, "comment": "AUC"},
    )
    saved = approver.send("put", "/models/digits/gates", body, **{"If-Match": '"0"'})
    assert (saved.status_code, saved["ETag"]) == (200, '"1"')
    assert saved.json()["differences"] == ["metric: the objective → roc_auc", "tolerance: 0.01 → 0.05"]
    stale = approver.send("put", "/models/digits/gates", body, **{"If-Match": '"0"'})
    assert (stale.status_code, stale.json()["code"]) == (412, "stale_etag")
    back = approver.send("put", "/models/digits/gates", {"rules": saved.json()["rules"]})
    assert (back.status_code, back.json()["revision"]) == (200, 1)


def test_only_an_approver_with_the_scope_changes_gates(yard: Yard, call: Any) -> None:
    body = {"rules": {"tolerance": 0.5}}
    for caller in (call(yard.member), call(yard.approver, "read", "write")):
        assert caller.send("put", "/models/digits/gates", body).status_code == 403
    assert call(yard.stranger).get("/models/digits/gates").status_code == 404


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
def test_wrong_gates_are_refused_at_their_field(yard: Yard, call: Any, body: Any, pointer: str) -> None:
    answer = call(yard.approver).send("put", "/models/digits/gates", body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_a_request_shows_its_rules_and_what_to_do_about_a_failed_gate(yard: Yard, call: Any) -> None:
    call(yard.approver).send("put", "/models/digits/gates", {"rules": {"tolerance": 0.02}})
    asked = call(yard.member).post("/promotions", {"model": "digits", "version": yard.version().number})
    failed = {
        "name": "better_than_baseline",
        "state": "failed",
        "value": 0.8,
        "limit": 0.81,
        "metric": "accuracy",
    }
    gate(yard, asked.json()["id"], {"gates": [failed]})
    shown = call(yard.member).get(f"/promotions/{asked.json()['id']}").json()
    assert (shown["gates_revision"], shown["gates_changed_by"]) == (1, "approver")
    assert shown["gates"][0]["metric"] == "accuracy"
    assert "ask an approver to change the gates" in shown["gates"][0]["next_step"]
