"""Deleting, previewing and restoring by REST."""

from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.queries.storage import storage
from tests.factories import make_dataset, make_experiment, make_job, make_job_artifact, make_model
from tests.people import People


def rows(people: People) -> dict[str, str]:
    """Make a row of each kind that can be deleted; return its path."""
    experiment = make_experiment(project=people.project, by=people.member)
    job = make_job(by=people.member, project=people.project, kind="train", state="completed")
    make_job_artifact(job)
    make_dataset("flowers", project=people.project, by=people.member)
    make_model("digits", project=people.project, by=people.member)
    return {
        f"/experiments/{experiment.pk}": "",
        f"/jobs/{job.pk}": "",
        "/datasets/flowers": "?project=yard",
        "/models/digits/versions/1": "",
        "/projects/yard": "",
    }


def test_each_kind_is_previewed_deleted_and_restored(people: People, call: Any) -> None:
    caller = call(people.owner)
    for path, query in rows(people).items():
        before = caller.get(f"{path}{query}").json()
        preview = caller.get(f"{path}/deletion{query}").json()
        assert (preview["referrers"], preview["days"]) == ([], 7), path
        assert caller.send("delete", f"{path}{query}").status_code == 204, path
        for method in ("get", "delete"):
            assert caller.send(method, f"{path}{query}").status_code == 404, path
        assert caller.get(f"{path}/deletion{query}").status_code == 404
        listed = caller.get("/deletions").json()["items"]
        assert [item["lost"] for item in listed] == [preview["lost"]]
        assert listed[0]["restore"] == f"/api/v1{path}/restore{query}"
        restored = caller.post(f"{path}/restore{query}")
        assert restored.status_code == 200, restored.json()
        assert restored.json() == before
        assert caller.get("/deletions").json()["items"] == []
        assert caller.post(f"{path}/restore{query}").status_code == 404


def test_a_refused_deletion_names_what_refers_to_it(people: People, call: Any) -> None:
    job = make_job(by=people.member, project=people.project, state="completed")
    version = make_model("digits", project=people.project, by=people.member).versions.get()
    version.source_job = job
    version.save()
    caller = call(people.member)
    answer = caller.send("delete", f"/jobs/{job.pk}")
    assert (answer.status_code, answer.json()["code"]) == (409, "in_use")
    named = {
        "kind": "version",
        "name": "digits/1",
        "label": "digits v1",
        "project": None,
        "why": "was made by it and needs its lineage",
    }
    assert answer.json()["referrers"] == [named]
    assert caller.get(f"/jobs/{job.pk}/deletion").json()["referrers"] == [named]
    running = make_job(by=people.member, project=people.project, state="running")
    assert caller.send("delete", f"/jobs/{running.pk}").status_code == 409


def test_strangers_get_404_members_403_and_read_tokens_403(people: People, call: Any) -> None:
    for path, query in rows(people).items():
        for method, suffix in (("delete", ""), ("get", "/deletion"), ("post", "/restore")):
            address = f"{path}{suffix}{query}"
            assert call(people.stranger).send(method, address).status_code == 404, address
            if suffix != "/restore":
                assert call(people.trainer).send(method, address).status_code == 403, address
        assert call(people.owner, "read").send("delete", f"{path}{query}").status_code == 403
    assert call(people.stranger).get("/deletions").json()["items"] == []


def test_deleted_rows_are_in_no_list_no_count_and_no_search(people: People, call: Any) -> None:
    caller = call(people.owner)
    paths = rows(people)
    for path, query in list(paths.items())[:4]:
        caller.send("delete", f"{path}{query}")
    for listed in ("/experiments", "/jobs", "/datasets", "/models/digits/versions"):
        assert caller.get(listed).json()["items"] == [], listed
    assert caller.get("/models/digits").json()["versions"] == 0
    assert caller.get("/promotions").json()["items"] == []
    caller.send("delete", "/projects/yard")
    assert caller.get("/projects").json()["items"] == []
    assert caller.get("/me").json()["projects"] == []
    assert caller.get("/models").json()["items"] == []
    assert caller.get("/endpoints").json()["items"] == []


def test_storage_counts_each_file_of_a_project_once(people: People, call: Any) -> None:
    job = make_job(by=people.member, project=people.project, state="completed")
    reference = make_job_artifact(job)
    version = make_model("digits", project=people.project, by=people.member).versions.get()
    version.artifact = reference.artifact
    version.save()
    other = make_job_artifact(job, name="predictions", role="predictions")
    gone = make_job(by=people.member, project=people.project, state="completed")
    hidden = make_job_artifact(gone)
    data = make_dataset("flowers", project=people.project, by=people.member).versions.get().table
    assert data is not None
    call(people.member).send("delete", f"/jobs/{gone.pk}")
    answer = call(people.member).get("/storage").json()
    (project,) = answer["projects"]
    sizes = {kind: project[kind]["bytes"] for kind in ("datasets", "versions", "outputs", "deleted")}
    assert sizes == {
        "datasets": data.bytes,
        "versions": reference.artifact.bytes,
        "outputs": other.artifact.bytes,
        "deleted": hidden.artifact.bytes,
    }
    assert project["bytes"] == sum(sizes.values()) + project["events"]
    assert answer["unreferenced"] is None
    total = call(people.administrator).get("/storage").json()
    assert total["stored"]["files"] == total["unreferenced"]["files"] + 4


def test_storage_reads_the_files_of_the_projects_that_are_shown_and_no_others(people: People) -> None:
    elsewhere = people.stranger.memberships.get().project
    for project, by in ((people.project, people.member), (elsewhere, people.stranger)):
        make_job_artifact(make_job(by=by, project=project, state="completed"))
    with CaptureQueriesContext(connection) as queries:
        storage.storage_of_user(people.member)
    models = ("datasetversion", "furtherfile", "modelversion", "jobartifact")
    tables = [f'FROM "jobs_{model}"' for model in models]
    read = [query["sql"] for query in queries if any(table in query["sql"] for table in tables)]
    assert len(read) == 5
    assert all(f'"project_id" IN ({people.project.pk})' in sql for sql in read)
