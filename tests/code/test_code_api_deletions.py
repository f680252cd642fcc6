"""Deleting, restoring and collecting code over REST."""

import pytest
from django.test import Client

from jobs.models import AuditEvent, CodeVersion, Deletion
from jobs.queries.storage import disk_use, references
from tests.code.making import MODEL
from tests.code.test_api import CODE, send
from tests.datasets.test_disk_quota import limit
from tests.people import People, browser_of


@pytest.fixture
def api(people: People) -> Client:
    return browser_of(people.member)


def test_lists_are_filtered_by_name(api: Client) -> None:
    for number, name in enumerate(("net", "net", "trees")):
        send(api, ("model.py", f"x = {number}\n"), name=name)
    assert [item["name"] for item in api.get(f"{CODE}?sort=name").json()["items"]] == ["net", "net", "trees"]
    assert len(api.get(f"{CODE}?name=net").json()["items"]) == 2


def test_a_repeated_request_with_its_key_stores_once(api: Client) -> None:
    first, again = (send(api, ("model.py", MODEL), key="one") for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert again["Idempotency-Replayed"] == "true"


def test_deleted_code_can_be_restored_and_then_is_removed_with_its_files(people: People, api: Client) -> None:
    digest = send(api, ("model.py", MODEL)).json()["digest"]
    preview = api.get(f"{CODE}/{digest}/deletion").json()
    assert (preview["kind"], preview["bytes"], preview["frees"]) == ("code", len(MODEL), len(MODEL))
    assert preview["lost"] == [{"what": "versions of code", "count": 1, "bytes": len(MODEL)}]
    assert browser_of(people.trainer).delete(f"{CODE}/{digest}").status_code == 403, (
        "neither author nor admin"
    )
    assert api.delete(f"{CODE}/{digest}").status_code == 204
    assert api.get(f"{CODE}/{digest}").status_code == 404
    (deletion,) = api.get("/api/v1/deletions").json()["items"]
    assert deletion["restore"] == f"{CODE}/{digest}/restore?project=yard"
    assert api.post(deletion["restore"]).json()["digest"] == digest
    assert send(api, ("model.py", MODEL)).status_code == 200


def test_code_that_an_experiment_runs_is_not_deleted(people: People, api: Client) -> None:
    digest = send(api, ("model.py", MODEL)).json()["digest"]
    model = {"kind": "script", "digest": digest, "entry": "model.py"}
    body = {"project": "yard", "name": "net search", "spec": {"version": 1, "model": model}}
    answer = api.post("/api/v1/experiments", body, content_type="application/json")
    assert answer.status_code == 201, answer.content
    refused = api.delete(f"{CODE}/{digest}")
    assert refused.status_code == 409
    (needs,) = api.get(f"{CODE}/{digest}/deletion").json()["referrers"]
    assert (needs["kind"], needs["label"], needs["why"]) == ("experiment", "experiment net search", "runs it")


def test_sending_the_files_of_a_deleted_version_restores_it(people: People, api: Client) -> None:
    digest = send(api, ("model.py", MODEL)).json()["digest"]
    api.delete(f"{CODE}/{digest}")
    # Neither its author nor an administrator of the project.
    answer = send(browser_of(people.trainer), ("model.py", MODEL))
    assert (answer.status_code, answer.json()["digest"]) == (200, digest)
    assert api.get(f"{CODE}/{digest}").status_code == 200
    assert not Deletion.objects.exists()
    assert AuditEvent.objects.get(action="code.restore").actor == people.trainer


def test_the_empty_path_is_no_file(api: Client) -> None:
    digest = send(api, ("model.py", MODEL)).json()["digest"]
    assert api.get(f"{CODE}/{digest}/text", {"file": ""}).status_code == 404


def test_files_arrive_also_if_the_text_is_blank(api: Client) -> None:
    assert send(api, ("net.py", MODEL), text=" \n").json()["name"] == "net"


def test_the_files_count_against_the_disk_quota(people: People, api: Client) -> None:
    send(api, ("model.py", MODEL))
    assert disk_use.bytes_of_project(people.project.pk) == len(MODEL)
    limit(people.project, len(MODEL) + 10)
    refused = send(api, ("other.py", "#" * 100))
    assert (refused.status_code, refused.json()["code"]) == (409, "quota_reached")
    assert send(api, ("again.py", MODEL)).status_code == 201, "its file is there already"
    use = api.get("/api/v1/storage").json()["projects"][0]
    assert use["code"] == {"files": 1, "bytes": len(MODEL)}


def test_the_collection_keeps_the_files_of_code(api: Client) -> None:
    send(api, ("model.py", MODEL))
    assert not references.unreferenced_artifacts().exists()


def test_deleting_the_project_deletes_its_code(people: People, api: Client) -> None:
    digest = send(api, ("model.py", MODEL)).json()["digest"]
    owner = browser_of(people.owner)
    lost = owner.get("/api/v1/projects/yard/deletion").json()["lost"]
    assert {"what": "versions of code", "count": 1, "bytes": len(MODEL)} in lost
    assert owner.delete("/api/v1/projects/yard").status_code == 204
    assert not CodeVersion.objects.exists()
    assert Deletion.objects.get().kind == "project"
    assert owner.post("/api/v1/projects/yard/restore").status_code == 200
    assert owner.get(f"{CODE}/{digest}").status_code == 200
