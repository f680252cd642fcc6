"""Code over REST: storing, reading, comparing, deleting, and refusals."""

import hashlib
import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from jobs.models import Artifact, AuditEvent, CodeFile, CodeVersion, Project
from tests.code.making import MODEL, tarred, zipped
from tests.people import People, browser_of
from webapp import code_reader

CODE = "/api/v1/code"


@pytest.fixture
def api(people: People) -> Client:
    return browser_of(people.member)


def send(client: Client, *files: tuple[str, str | bytes], key: str = "", **fields: Any) -> Any:
    bodies = [(name, text.encode() if isinstance(text, str) else text) for name, text in files]
    form = {"project": "yard", "file": [SimpleUploadedFile(*file) for file in bodies], **fields}
    return client.post(CODE, form, headers={"Idempotency-Key": key} if key else {})


def problems(answer: Any) -> list[tuple[str, str]]:
    assert answer.status_code == 422, answer.content
    return [(error["pointer"], error["message"]) for error in answer.json()["errors"]]


def test_a_file_becomes_a_version_with_what_was_found_in_it(api: Client) -> None:
    answer = send(api, ("shop_net.py", MODEL))
    assert answer.status_code == 201, answer.content
    version = answer.json()
    assert (version["name"], version["entries"]) == ("shop_net", ["Doubled", "Net", "build_model"])
    assert (version["packages"], version["files"], version["created_by"]) == (False, 1, "member")
    assert api.get(f"{CODE}/{version['digest']}").json() == version
    assert [item["digest"] for item in api.get(CODE).json()["items"]] == [version["digest"]]
    (event,) = AuditEvent.objects.filter(action="code.create")
    assert event.detail["digest"] == version["digest"]


def test_the_same_files_are_the_same_version_however_they_arrive(api: Client) -> None:
    files = {"model.py": MODEL, "layers/dense.py": "x = 1\n"}
    first = send(api, ("code.zip", zipped(files)), name="net")
    assert first.status_code == 201
    again = [
        send(api, ("other.tar.gz", tarred({f"repository/{path}": text for path, text in files.items()}))),
        send(api, ("dense.py", "x = 1\n"), ("model.py", MODEL), path=["layers/dense.py", "model.py"]),
        api.post(
            CODE,
            {"project": "yard", "files": [{"path": path, "text": text} for path, text in files.items()]},
            content_type="application/json",
        ),
    ]
    assert [(answer.status_code, answer.json()) for answer in again] == [(200, first.json())] * 3
    assert CodeVersion.objects.count() == 1


def test_the_digest_is_that_of_sorted_paths_and_contents(api: Client) -> None:
    version = send(api, ("b.py", "b\n"), ("a.py", "a\n")).json()
    content = b"".join(name + b".py\0" + hashlib.sha256(name + b"\n").digest() for name in (b"a", b"b"))
    assert version["digest"] == hashlib.sha256(content).hexdigest()


def test_pasted_text_is_a_file_with_ordinary_lines(api: Client) -> None:
    answer = api.post(CODE, {"project": "yard", "text": MODEL.replace("\n", "\r\n").rstrip()})
    assert answer.json()["digest"] == send(api, ("model.py", MODEL)).json()["digest"]
    named = api.post(CODE, {"project": "yard", "text": "x = 1\n", "path": "net.py"}).json()
    assert (named["name"], CodeFile.objects.get(version__digest=named["digest"]).path) == ("net", "net.py")


def test_files_and_their_text_are_read(api: Client) -> None:
    digest = send(api, ("code.zip", zipped({"model.py": MODEL, "vocabulary.bin": b"\0"}))).json()["digest"]
    files = api.get(f"{CODE}/{digest}/files").json()["items"]
    assert [(file["path"], file["lines"]) for file in files] == [("model.py", 23), ("vocabulary.bin", None)]
    assert api.get(f"{CODE}/{digest}/text", {"file": "model.py"}).json()["text"] == MODEL
    assert api.get(f"{CODE}/{digest}/text").json()["path"] == "model.py"
    assert api.get(f"{CODE}/{digest}/differences").status_code == 409, "there is no other version"
    refused = api.get(f"{CODE}/{digest}/text", {"file": "vocabulary.bin"})
    assert (refused.status_code, refused.json()["code"]) == (409, "not_text")
    assert api.get(f"{CODE}/{digest}/text", {"file": "other.py"}).status_code == 404
    artifact = api.get(f"/api/v1/artifacts/{files[0]['digest']}")
    assert b"".join(artifact.streaming_content) == MODEL.encode()  # type: ignore[attr-defined]
    assert "attachment" in artifact["Content-Disposition"]


def test_versions_are_compared(api: Client) -> None:
    old = send(api, ("c.zip", zipped({"a.py": "x = 1\n", "b.py": "", "c.py": "c\n"})), name="net").json()
    new = send(api, ("c.zip", zipped({"a.py": "x = 2\n", "b.py": "", "d.py": "d\n"})), name="net").json()
    comparison = api.get(f"{CODE}/{new['digest']}/differences", {"old": old["digest"]}).json()
    assert (comparison["equal"], [(file["path"], file["change"]) for file in comparison["files"]]) == (
        1, [("a.py", "changed"), ("c.py", "removed"), ("d.py", "added")],
    )  # fmt: skip
    assert [line["text"] for line in comparison["files"][0]["hunks"][0]] == ["x = 1", "x = 2"]
    assert [line["marks"] for line in comparison["files"][0]["hunks"][0]] == [[[4, 5]], [[4, 5]]]
    assert api.get(f"{CODE}/{new['digest']}/differences").json() == comparison, "the one before it"
    missing = api.get(f"{CODE}/{new['digest']}/differences", {"old": "0" * 64})
    assert missing.status_code == 404


@pytest.mark.parametrize(
    ("files", "fields", "pointer", "message"),
    [
        ([], {}, "/file", "choose files"),
        ([("model.py", MODEL)], {"text": "x"}, "/text", "not both"),
        ([("model.py", MODEL)], {"path": ["a.py", "b.py"]}, "/path", "2 paths and 1 files"),
        ([("model.py", MODEL)], {"path": ["../a.py"]}, "/file", "leads out of its folder"),
        ([("model.py", MODEL)], {"name": "x" * 101}, "/name", "1 to 100 characters"),
        ([("model.py", MODEL)], {"name": "a\nb"}, "/name", "printable"),
        ([("notes.txt", "x")], {}, "/file", "no Python file"),
        ([("code.zip", b"PK\x03\x04")], {}, "/file", "damaged"),
        ([], {"text": "x", "path": "notes.txt"}, "/text", "no Python file"),
    ],
)
def test_a_refusal_names_the_field(
    api: Client, files: list[tuple[str, str]], fields: dict[str, Any], pointer: str, message: str
) -> None:
    ((place, why),) = problems(send(api, *files, **fields))
    assert (place, message in why) == (pointer, True), why
    assert not CodeVersion.objects.exists()
    assert not Artifact.objects.exists()


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"files": [{"path": "a.py", "text": ""}]}, "/project"),
        ({"project": "yard", "files": []}, "/files"),
        ({"project": "yard", "files": [{"path": "a.py"}]}, "/files/0/text"),
        ({"project": "yard", "files": [{"path": "../a.py", "text": ""}]}, "/files"),
        ({"project": "yard", "files": [{"path": "a.py", "text": ""}], "x": 1}, "/x"),
    ],
)
def test_a_json_body_is_checked(api: Client, body: dict[str, Any], pointer: str) -> None:
    answer = api.post(CODE, json.dumps(body), content_type="application/json")
    assert [place for place, _ in problems(answer)] == [pointer]


def test_half_of_a_character_in_json_is_malformed(api: Client) -> None:
    body = '{"project": "yard", "files": [{"path": "a.py", "text": "x = 1  # \\ud800"}]}'
    assert api.post(CODE, body, content_type="application/json").status_code == 400


def test_a_file_that_ends_the_reader_is_refused(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_reader, "PROGRAM", ("/bin/sh", "-c", "kill -9 $$"))
    ((pointer, why),) = problems(send(api, ("model.py", MODEL)))
    assert (pointer, "too much time or memory" in why) == ("/file", True)


def test_while_other_code_is_read_the_client_is_asked_to_wait(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_reader, "UPLOAD_WAIT_SECONDS", 0.0)
    for _ in range(code_reader.AT_ONCE):
        assert code_reader._uploads.acquire(blocking=False)
    try:
        answer = send(api, ("model.py", MODEL))
    finally:
        for _ in range(code_reader.AT_ONCE):
            code_reader._uploads.release()
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")


def test_a_viewer_reads_and_does_not_store_and_a_stranger_sees_nothing(people: People, api: Client) -> None:
    digest = send(api, ("model.py", MODEL)).json()["digest"]
    viewer, stranger = browser_of(people.viewer), browser_of(people.stranger)
    assert viewer.get(f"{CODE}/{digest}").status_code == 200
    assert send(viewer, ("model.py", MODEL)).status_code == 403
    assert stranger.get(f"{CODE}/{digest}").status_code == 404
    assert stranger.get(CODE).json()["items"] == []
    assert send(stranger, ("model.py", MODEL)).status_code == 404
    artifact = CodeFile.objects.get().artifact_id
    assert viewer.get(f"/api/v1/artifacts/{artifact}").status_code == 200
    assert stranger.get(f"/api/v1/artifacts/{artifact}").status_code == 404


def test_a_digest_in_two_projects_takes_the_project(people: People, api: Client) -> None:
    other = Project.objects.create(slug="other", name="Other", created_by=people.member)
    other.memberships.create(user=people.member, role="member")
    digest = send(api, ("model.py", MODEL)).json()["digest"]
    assert send(api, ("model.py", MODEL), project="other").status_code == 201
    assert api.get(f"{CODE}/{digest}").json()["code"] == "ambiguous"
    assert api.get(f"{CODE}/{digest}?project=other").json()["project"] == "other"
    assert [item["project"] for item in api.get(f"{CODE}?project=yard").json()["items"]] == ["yard"]


def test_a_digest_in_two_projects_is_found_and_restored_in_its_own(people: People, api: Client) -> None:
    other = Project.objects.create(slug="other", name="Other", created_by=people.owner)
    membership = other.memberships.create(user=people.member, role="member")
    digest = send(api, ("model.py", MODEL)).json()["digest"]
    send(api, ("model.py", MODEL), project="other")
    addresses = {item["url"] for item in api.get(f"/search?q={digest[:12]}").json()["items"]}
    assert addresses == {f"/code/{digest}?project={slug}" for slug in ("yard", "other")}
    assert api.delete(f"{CODE}/{digest}?project=yard").status_code == 204
    restored = api.post(f"{CODE}/{digest}/restore")
    assert (restored.status_code, restored.json()["project"]) == (200, "yard"), "the other one is not deleted"
    for slug in ("yard", "other"):
        api.delete(f"{CODE}/{digest}?project={slug}")
    assert api.post(f"{CODE}/{digest}/restore").json()["code"] == "ambiguous"
    membership.delete()
    assert api.post(f"{CODE}/{digest}/restore").json()["project"] == "yard", "others do not matter"
