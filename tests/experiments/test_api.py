"""Experiments over REST."""

from typing import Any
from unittest.mock import Mock

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from jobs.actions.experiments import experiments
from jobs.errors import StaleState
from jobs.models import Experiment, Job
from tests.experiments.test_plan import documented
from tests.world import World


@pytest.fixture
def api(world: World) -> Client:
    return world.client(world.owner)


def post(client: Client, path: str, body: Any = None, **headers: str) -> Any:
    return client.post(f"/api/v1{path}", body or {}, content_type="application/json", headers=headers)


def patch(client: Client, path: str, body: Any, **headers: str) -> Any:
    return client.patch(f"/api/v1{path}", body, content_type="application/json", headers=headers)


def make(client: Client, spec: Any, **more: Any) -> dict[str, Any]:
    answer = post(client, "/experiments", {"project": "yard", "name": "try", "spec": spec, **more})
    assert answer.status_code == 201, answer.content
    body: dict[str, Any] = answer.json()
    return body


def test_the_documented_example_validates_without_creating_anything(api: Client) -> None:
    answer = post(api, "/experiments/validate", {"project": "yard", "name": "a", "spec": documented()})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["valid"], body["errors"]) == (True, [])
    assert body["plan"]["trials"] == 20
    assert body["plan"]["memory_per_device"] == sum(body["plan"]["memory"].values())
    assert not Experiment.objects.exists()


def test_validating_an_invalid_spec_responds_with_its_errors(api: Client) -> None:
    answer = post(api, "/experiments/validate", {"project": "yard", "name": "", "spec": {"version": 1}})
    assert answer.status_code == 200
    assert {error["pointer"] for error in answer.json()["errors"]} == {
        "/spec/data",
        "/spec/model",
        "/name",
    }


def test_a_created_experiment_has_a_first_revision(api: Client, spec: dict[str, Any]) -> None:
    experiment = make(api, spec, tags=["first"])
    assert (experiment["revision"], experiment["tags"], experiment["state"]) == (1, ["first"], None)
    assert experiment["spec"]["fit"]["epochs"] == 5


def test_an_invalid_spec_is_rejected_with_pointers(api: Client, spec: dict[str, Any]) -> None:
    answer = post(
        api, "/experiments", {"project": "yard", "name": "x", "spec": {**spec, "fit": {"epochs": 0}}}
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_spec")
    assert answer.json()["errors"][0]["pointer"] == "/spec/fit/epochs"


def test_settings_without_effect_on_trees_are_rejected_with_pointers(api: Client) -> None:
    spec = {
        "data": {"dataset": "digits"},
        "model": {"kind": "template", "template": "trees"},
        "fit": {"epochs": 5, "optimizer": "sgd"},
        "precision": {"policy": "mixed_bfloat16"},
        "after": {"quantize": {}},
    }
    answer = post(api, "/experiments", {"project": "yard", "name": "x", "spec": spec})
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_spec")
    problems = {error["pointer"]: error["message"] for error in answer.json()["errors"]}
    assert set(problems) == {"/spec/fit/optimizer", "/spec/precision", "/spec/after/quantize"}
    assert problems["/spec/after/quantize"] == (
        "cannot follow trees, since int8 is for the kernels of layers, and trees have none; float16 is for "
        "the weights of layers, and trees have none; bfloat16 is for the weights of layers, and trees have "
        "none; leave it out"
    )


def test_a_misspelt_field_is_named_with_its_pointer(api: Client, spec: dict[str, Any]) -> None:
    body = {"project": "yard", "name": "x", "spec": {**spec, "fit": {"epoch": 5, "epochs": 5}}, "tag": "a"}
    message = {
        error["pointer"]: error["message"] for error in post(api, "/experiments", body).json()["errors"]
    }
    assert message["/tag"] == "'tag' is not a known field"
    spelt = post(api, "/experiments", {key: body[key] for key in ("project", "name", "spec")})
    assert spelt.json()["errors"] == [
        {"pointer": "/spec/fit/epoch", "message": "'epoch' is not a field of fit"}
    ]


def test_a_draft_may_be_unfinished_but_not_submitted(api: Client) -> None:
    experiment = make(api, {"version": 1}, draft=True)
    assert (experiment["revision"], experiment["draft"]) == (None, {"version": 1})
    assert post(api, f"/experiments/{experiment['id']}/submit").status_code == 422


def test_a_revision_is_made_only_when_the_spec_differs(api: Client, spec: dict[str, Any]) -> None:
    experiment = make(api, spec)
    same = patch(api, f"/experiments/{experiment['id']}", {"spec": spec}).json()
    other = patch(api, f"/experiments/{experiment['id']}", {"spec": {**spec, "fit": {"epochs": 6}}}).json()
    assert (same["revision"], other["revision"]) == (1, 2)


def test_an_old_etag_is_refused(api: Client, spec: dict[str, Any]) -> None:
    experiment = make(api, spec)
    address = f"/experiments/{experiment['id']}"
    seen = api.get(f"/api/v1{address}")["ETag"]
    assert patch(api, address, {"name": "mine"}, **{"If-Match": seen}).status_code == 200
    assert patch(api, address, {"name": "theirs"}, **{"If-Match": seen}).status_code == 412
    assert patch(api, address, {"name": "theirs", "version": 1}).json()["code"] == "stale_state"


def test_submitting_queues_a_root_job(api: Client, searching: dict[str, Any]) -> None:
    experiment = make(api, searching)
    answer = post(api, f"/experiments/{experiment['id']}/submit")
    assert answer.status_code == 202
    job = Job.objects.get(pk=answer.json()["job"])
    assert (job.kind, job.state, job.parent) == ("search", "queued", None)
    assert [warning["pointer"] for warning in answer.json()["warnings"]] == ["/pool"], "no worker runs"


def test_submitting_twice_under_one_key_queues_once(api: Client, spec: dict[str, Any]) -> None:
    experiment = make(api, spec)
    answers = [
        post(api, f"/experiments/{experiment['id']}/submit", **{"Idempotency-Key": "k1"}).json()
        for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert Job.objects.filter(experiment=experiment["id"]).count() == 1


def test_a_clone_has_the_spec_but_no_jobs(api: Client, spec: dict[str, Any]) -> None:
    experiment = make(api, spec)
    post(api, f"/experiments/{experiment['id']}/submit")
    copy = post(api, f"/experiments/{experiment['id']}/clone").json()
    assert (copy["name"], copy["digest"], copy["last_job"]) == ("try (copy)", experiment["digest"], None)


def test_deleting_waits_until_no_job_runs(api: Client, spec: dict[str, Any]) -> None:
    experiment = make(api, spec)
    address = f"/api/v1/experiments/{experiment['id']}"
    post(api, f"/experiments/{experiment['id']}/submit")
    assert api.delete(address).status_code == 409
    Job.objects.update(state="stopped")
    assert api.delete(address).status_code == 204
    assert not Job.objects.filter(experiment=experiment["id"]).exists()


def test_the_queries_of_the_list_do_not_depend_on_its_length(api: Client, spec: dict[str, Any]) -> None:
    counts = []
    for _ in range(3):
        experiment = make(api, spec)
        post(api, f"/experiments/{experiment['id']}/submit")
        with CaptureQueriesContext(connection) as queries:
            items = api.get("/api/v1/experiments").json()["items"]
        counts.append(len(queries))
        assert (items[0]["revision"], items[0]["state"]) == (1, "queued")
    assert len(set(counts)) == 1


def test_a_change_that_cannot_be_archived_is_not_made(
    api: Client, spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = make(api, spec)
    monkeypatch.setattr(experiments, "archive", Mock(side_effect=StaleState("changed")))
    answer = patch(api, f"/experiments/{experiment['id']}", {"name": "another", "archived": True})
    assert answer.status_code == 409
    assert Experiment.objects.get(pk=experiment["id"]).name == experiment["name"]


def test_archived_experiments_are_listed_only_on_request(api: Client, spec: dict[str, Any]) -> None:
    experiment = make(api, spec)
    patch(api, f"/experiments/{experiment['id']}", {"archived": True})
    assert api.get("/api/v1/experiments?project=yard").json()["items"] == []
    assert len(api.get("/api/v1/experiments?archived=true").json()["items"]) == 1


@pytest.mark.parametrize("order", ["name", "-created", "updated", "-state", "id"])
def test_the_list_is_paginated_by_key_in_every_order(api: Client, spec: dict[str, Any], order: str) -> None:
    numbers = {make(api, spec)["id"] for _ in range(3)}
    seen: list[int] = []
    query = {"limit": "2", "sort": order}
    for _ in range(2):
        page = api.get("/api/v1/experiments", query).json()
        seen += [item["id"] for item in page["items"]]
        query["cursor"] = page["next"]
    assert page["next"] is None
    assert sorted(seen) == sorted(numbers)


def test_a_viewer_reads_but_does_not_write(world: World, api: Client, spec: dict[str, Any]) -> None:
    experiment = make(api, spec)
    viewer = world.client(world.viewer)
    assert viewer.get(f"/api/v1/experiments/{experiment['id']}").status_code == 200
    assert patch(viewer, f"/experiments/{experiment['id']}", {"name": "n"}).status_code == 403
    assert post(viewer, f"/experiments/{experiment['id']}/submit").status_code == 403


def test_a_stranger_finds_nothing(world: World, api: Client, spec: dict[str, Any]) -> None:
    experiment = make(api, spec)
    stranger = world.client(world.stranger)
    path = f"/experiments/{experiment['id']}"
    answers = [stranger.get(f"/api/v1{path}"), stranger.get(f"/api/v1{path}/revisions")]
    answers += [post(stranger, f"{path}/{verb}") for verb in ("submit", "clone")]
    answers += [patch(stranger, path, {"name": "n"}), stranger.delete(f"/api/v1{path}")]
    answers += [post(stranger, "/experiments/validate", {"project": "yard", "spec": spec})]
    assert {answer.status_code for answer in answers} == {404}
    assert stranger.get("/api/v1/experiments").json()["items"] == []
