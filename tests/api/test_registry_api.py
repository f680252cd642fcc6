"""Models, versions, promotions, releases and artifacts over REST."""

from typing import Any

import pytest

from jobs.actions.registry import registration
from jobs.models import ModelVersion, PromotionRequest, User
from tests.api.test_idempotency import keras_archive
from tests.factories import make_experiment, make_job, make_job_artifact
from tests.registry.conftest import GOOD_GATES, OPEN_GATES, Yard, judge


def gate(installation: Yard, number: int, result: dict[str, Any] = GOOD_GATES) -> None:
    judge(PromotionRequest.objects.get(pk=number), result)


def test_a_version_is_requested_approved_released_and_rolled_back(installation: Yard, call: Any) -> None:
    member, approver, service = (
        call(installation.member),
        call(installation.approver),
        call(make_service(), "serve"),
    )
    first, second = installation.version(), installation.version()
    for version in (first, second):
        asked = member.post(
            "/promotions", {"model": "digits", "version": version.number, "stage": "production"}
        )
        assert asked.status_code == 201, asked.content
        assert asked.json()["state"] == "gating"
        gate(installation, asked.json()["id"])
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


def test_a_member_cannot_approve_nor_roll_back(installation: Yard, call: Any) -> None:
    installation.live()
    installation.live()
    caller = call(installation.member)
    assert caller.post("/models/digits/rollback", {"reason": "x"}).status_code == 403
    assert (
        call(installation.approver, "write").post("/models/digits/rollback", {"reason": "x"}).status_code
        == 403
    )


def test_a_second_approval_is_stale(installation: Yard, call: Any) -> None:
    promotion = installation.pending()
    path = f"/promotions/{promotion.pk}/approve"
    assert call(installation.approver).post(path, {}).status_code == 200
    again = call(installation.second_approver).post(path, {})
    assert (again.status_code, again.json()["code"]) == (409, "stale_state")


def test_a_rollback_sent_twice_with_one_key_is_done_once(installation: Yard, call: Any) -> None:
    for _ in range(3):
        installation.live()
    caller = call(installation.approver)
    answers = [
        caller.post("/models/digits/rollback", {"reason": "x"}, **{"Idempotency-Key": "k1"}).json()
        for _ in range(2)
    ]
    assert answers == [{"generation": 4, "version": 2}] * 2


def test_open_gates_are_409_until_accepted(installation: Yard, call: Any) -> None:
    promotion = installation.request()
    gate(installation, promotion.pk, OPEN_GATES)
    caller, path = call(installation.approver), f"/promotions/{promotion.pk}/approve"
    assert caller.post(path, {}).json()["code"] == "gates_open"
    assert caller.post(path, {"accept": ["test_metric"]}).status_code == 200


def test_canary_is_422_at_its_field(installation: Yard, call: Any) -> None:
    version = installation.version()
    body = {"model": "digits", "version": version.number, "stage": "canary"}
    answer = call(installation.member).post("/promotions", body)
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
    installation: Yard, call: Any, body: dict[str, Any], pointers: list[str]
) -> None:
    installation.live()
    answer = call(installation.approver).send("patch", "/endpoints/digits", body)
    assert answer.status_code == (422 if pointers else 200)
    errors = answer.json().get("errors", [])
    assert [error["pointer"] for error in errors] == pointers
    assert all("not available yet" in error["message"] for error in errors)
    assert call(installation.member).send("patch", "/endpoints/digits", body).status_code == 403


def test_rollback_without_a_target_is_409(installation: Yard, call: Any) -> None:
    installation.live()
    assert call(installation.approver).post("/models/digits/rollback", {"reason": "x"}).status_code == 409


PATHS = (
    "/models/digits",
    "/models/digits/versions",
    "/models/digits/versions/1",
    "/models/digits/history",
    "/endpoints/digits",
)


@pytest.mark.parametrize("path", PATHS)
def test_a_stranger_gets_404(installation: Yard, call: Any, path: str) -> None:
    installation.live()
    assert call(installation.viewer).get(path).status_code == 200
    assert call(installation.stranger).get(path).status_code == 404


def test_a_stranger_sees_empty_lists(installation: Yard, call: Any) -> None:
    promotion = installation.pending()
    caller = call(installation.stranger)
    for path in ("/models", "/promotions", "/endpoints", "/audit"):
        assert caller.get(path).json()["items"] == []
    assert caller.get(f"/promotions/{promotion.pk}").status_code == 404
    for verb in ("approve", "reject", "withdraw", "comment"):
        assert caller.post(f"/promotions/{promotion.pk}/{verb}", {"comment": "x"}).status_code == 404


def test_a_jobs_model_becomes_a_version(installation: Yard, call: Any) -> None:
    experiment = make_experiment(project=installation.project, by=installation.member)
    results = {"metrics": {"test": {"accuracy": 0.97}}}
    job = make_job(experiment=experiment, kind="train", by=installation.member, results=results)
    reference = make_job_artifact(job)
    answer = call(installation.member).post("/models/digits/versions", {"artifact": reference.artifact_id})
    assert answer.status_code == 201, answer.content
    version = answer.json()
    assert (version["state"], version["metrics"]) == ("validating", {"test": {"accuracy": 0.97}})
    assert version["lineage"]["job"] == job.pk
    assert version["lineage"]["revision"] == 1


def test_an_artifact_that_is_not_a_model_is_422(installation: Yard, call: Any) -> None:
    job = make_job(project=installation.project, kind="train", by=installation.member)
    report = make_job_artifact(job, role="report", name="report.json")
    answer = call(installation.member).post("/models/digits/versions", {"artifact": report.artifact_id})
    assert answer.status_code == 422
    assert "is the report of a job" in answer.json()["detail"]


def test_an_artifact_of_others_is_404(installation: Yard, call: Any) -> None:
    job = make_job(project=installation.project, kind="train", by=installation.member)
    reference = make_job_artifact(job)
    caller = call(installation.stranger)
    assert caller.get(f"/artifacts/{reference.artifact_id}").status_code == 404


def test_an_upload_must_be_a_keras_archive(installation: Yard, call: Any) -> None:
    head = b'Content-Disposition: form-data; name="file"; filename="m.keras"'
    body = b"--b\r\n" + head + b"\r\n\r\nnot a zip\r\n--b--\r\n"
    answer = call(installation.member).raw(
        "POST", "/models/digits/versions", body, "multipart/form-data; boundary=b"
    )
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/file")
    assert "save the model with model.save" in answer.json()["errors"][0]["message"]
    assert keras_archive()[:2] == b"PK"


def test_a_refused_version_shows_the_reason_and_no_code_of_the_worker(installation: Yard, call: Any) -> None:
    version = installation.version()
    ModelVersion.objects.update(state="validating")
    error = {
        "code": "bad_model",
        "message": "it is no model",
        "traceback": 'File "/srv/untrusted.py", line 7',
    }
    registration.mark_invalid(version.pk, error)
    error_out = call(installation.member).get(f"/models/digits/versions/{version.number}").json()["error"]
    assert error_out == {"code": "bad_model", "message": "it is no model"}
