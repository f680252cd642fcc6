"""Columns, dialects and several files of data sets over REST."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from jobs.actions.data import datasets, profiles
from jobs.kinds.profile.actions import ProfileActions
from jobs.kinds.profile.rows import profiles_of
from jobs.models import DatasetVersion, Job
from jobs.queries.storage import disk_use
from tests import factories
from tests.datasets.making import SHOP, make_ready
from tests.datasets.test_api import CSV, send
from tests.world import World


@pytest.fixture
def api(world: World) -> Client:
    return world.client(world.owner)


def send_files(client: Client, *files: SimpleUploadedFile, **fields: Any) -> Any:
    form = {"project": "yard", "slug": "people", "file": list(files), **fields}
    return client.post("/api/v1/datasets", form)


def test_roles_and_types_of_columns_are_corrected_with_the_upload(api: Client) -> None:
    columns = [{"name": "age", "type": "category"}, {"name": "bmi", "role": "ignore"}]
    answer = send(api, columns=json.dumps(columns))
    assert answer.status_code == 201
    version = DatasetVersion.objects.latest("pk")
    assert version.request["columns"] == columns
    assert Job.objects.filter(profiles_of(version.pk)).get().kind == "profile"


def test_a_date_format_is_stated_with_the_upload_or_later(api: Client) -> None:
    columns = [{"name": "age", "role": "time", "date_format": "%Y"}, {"name": "bmi", "type": "date"}]
    assert send(api, columns=json.dumps(columns)).status_code == 201
    version = DatasetVersion.objects.latest("pk")
    assert version.request["columns"] == columns
    make_ready(version, SHOP)
    body = {"columns": [{"name": "bought", "date_format": "%m/%d/%Y"}]}
    address = "/api/v1/datasets/people/versions/1/read?project=yard"
    answer = api.post(address, body, content_type="application/json")
    assert answer.status_code in (200, 201, 202), answer.content
    assert body["columns"][0] in DatasetVersion.objects.latest("pk").request["columns"]


@pytest.mark.parametrize("form", ["unix milliseconds", "%Y-%d-%m"])
def test_unix_times_and_days_before_months_are_formats_over_rest(api: Client, form: str) -> None:
    columns = [{"name": "age", "date_format": form}]
    assert send(api, columns=json.dumps(columns)).status_code == 201
    assert DatasetVersion.objects.latest("pk").request["columns"] == columns


@pytest.mark.parametrize(
    ("columns", "pointer", "message"),
    [
        (
            '[{"name": "age", "date_format": "DD/MM/YYYY"}]',
            "/columns/0/date_format",
            "it may mean '%d/%m/%Y'",
        ),
        (
            '[{"name": "age", "type": "text", "date_format": "%Y"}]',
            "/columns/0/date_format",
            "is for columns of type date",
        ),
        ("{", "/columns", ""),
        ('{"age": "number"}', "/columns", "columns must be a list"),
        ('[{"name": "age", "type": "colour"}]', "/columns/0/type", "colour"),
        ('[{"name": "age", "kind": "number"}]', "/columns/0/kind", "'kind' is not a field"),
        ('[{"name": "age", "role": "sample"}]', "/columns/0/role", "sample"),
        ('[{"name": "age"}, {"name": "age"}]', "/columns", "'age' is named twice"),
    ],
)
def test_columns_that_cannot_be_read_are_refused_with_their_place(
    api: Client, columns: str, pointer: str, message: str
) -> None:
    before = DatasetVersion.objects.count()
    answer = send(api, columns=columns)
    assert answer.status_code == 422
    error = answer.json()["errors"][0]
    assert error["pointer"] == pointer and message in error["message"]
    assert DatasetVersion.objects.count() == before


def test_a_version_lists_its_columns_with_role_and_type(api: Client, world: World) -> None:
    send(api)
    make_ready(DatasetVersion.objects.latest("pk"), SHOP)
    columns = api.get("/api/v1/datasets/people/versions/1", {"project": "yard"}).json()["columns"]
    assert columns[0] == {
        "name": "id",
        "role": "id",
        "type": "integer",
        "missing": 0,
        "distinct": 40,
        "reason": "it has another value in every row, so it identifies rows",
    }
    assert [(column["name"], column["role"], column["type"]) for column in columns[1:]] == [
        ("city", "feature", "category"),
        ("bought", "feature", "date"),
        ("price", "target", "number"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "source"),
    [
        ("people.tsv", b"a\tb\n1\t2\n", "csv"),
        ("people.txt", "Größe;y\n1,5;0\n".encode("cp1252"), "csv"),
        ("people.csv", "a,b\n1,2\n".encode("utf-16"), "csv"),
        ("people.jsonl", b'{"a": 1}\n', "json_lines"),
        ("people.arrow", b"ARROW1\0\0", "arrow"),
        ("people.npy", b"\x93NUMPY\1\0", "npy"),
    ],
)
def test_formats_are_recognized_by_name_and_content(
    api: Client, name: str, content: bytes, source: str
) -> None:
    assert send(api, content, name).status_code == 201
    assert DatasetVersion.objects.latest("pk").request["source"] == source


def test_the_dialect_and_the_share_of_damaged_rows_come_with_the_upload(api: Client) -> None:
    dialect = {"delimiter": ";", "header": False}
    assert send(api, dialect=json.dumps(dialect), max_bad_share="0.02").status_code == 201
    version = DatasetVersion.objects.latest("pk")
    assert version.request["reading"] == {"dialect": dialect, "max_bad_share": 0.02}


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"dialect": "[]"}, "/dialect"),
        ({"dialect": '{"delimiter": "x"}'}, "/dialect/delimiter"),
        ({"dialect": '{"quote": "x"}'}, "/dialect/quote"),
        ({"max_bad_share": "1"}, "/max_bad_share"),
        ({"max_bad_share": "a"}, "/max_bad_share"),
    ],
)
def test_a_wrong_dialect_is_refused_with_its_field(api: Client, fields: dict[str, Any], pointer: str) -> None:
    answer = send(api, **fields)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_several_files_are_one_version_in_the_order_of_the_form(api: Client) -> None:
    parts = [SimpleUploadedFile("part-2.csv", CSV), SimpleUploadedFile("part-1.csv", CSV[:-10] + b"1,1,1\n")]
    assert send_files(api, *parts, slug="parts").status_code == 201
    version = DatasetVersion.objects.get(dataset__slug="parts")
    version_out = api.get("/api/v1/datasets/parts/versions/1?project=yard").json()
    assert (version_out["file"], version_out["files"]) == ("part-2.csv", ["part-2.csv", "part-1.csv"])
    further = version.further_files.get()
    assert (further.position, further.artifact.bytes) == (2, len(CSV) - 4)
    assert disk_use.bytes_added_by([further.artifact], version.dataset.project_id or 0) == 0
    assert api.get(f"/api/v1/artifacts/{further.artifact.digest}").status_code == 200
    profiles.record_profile_failure(version.pk, {"message": f"{further.artifact.digest} lacks 'a'"})
    version.refresh_from_db()
    assert version.error == {"message": "part-1.csv lacks 'a'"}
    assert version.created_by is not None
    page = api.get("/datasets/parts/versions/1?project=yard").content.decode()
    assert "<li>part-2.csv</li><li>part-1.csv</li>" in re.sub(r"\s+(?=<)|(?<=>)\s+", "", page)
    again = datasets.set_roles(version, datasets.Roles(target="age"), by=version.created_by)
    assert again.files == version.files
    assert again.further_files.get().artifact == further.artifact


def test_each_file_of_a_version_counts_in_the_storage_and_in_what_a_deletion_frees(api: Client) -> None:
    parts = [SimpleUploadedFile("part-1.csv", CSV), SimpleUploadedFile("part-2.csv", CSV[:-10] + b"1,1,1\n")]
    send_files(api, *parts, slug="parts")
    size = 2 * len(CSV) - 4
    (project,) = [row for row in api.get("/api/v1/storage").json()["projects"] if row["project"] == "yard"]
    assert project["datasets"] == {"files": 2, "bytes": size}
    preview = api.get("/api/v1/datasets/parts/deletion?project=yard").json()
    assert (preview["bytes"], preview["frees"]) == (size, size)


def test_files_of_a_version_have_one_format_and_a_digest_belongs_to_one(api: Client) -> None:
    csv, lines = SimpleUploadedFile("a.csv", CSV), SimpleUploadedFile("b.jsonl", b'{"a": 1}\n')
    refused = send_files(api, csv, lines)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/file")
    assert "'b.jsonl' has JSON Lines data, and 'a.csv' has CSV data" in refused.json()["detail"]
    files = [SimpleUploadedFile(f"{i}.csv", CSV) for i in range(2)]
    refused = send_files(api, *files, sha256="0" * 64)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/sha256")
    many = [SimpleUploadedFile(f"{i}.csv", CSV) for i in range(101)]
    assert send_files(api, *many).status_code in (413, 422)


def test_a_job_reads_the_files_in_their_order(api: Client) -> None:
    parts = [SimpleUploadedFile(f"part-{i}.csv", CSV + b"%d,1,1\n" % i) for i in range(3)]
    assert send_files(api, *parts, slug="parts").status_code == 201
    version = DatasetVersion.objects.get(dataset__slug="parts")
    worker = factories.make_worker("box")
    attempt = factories.make_attempt(Job.objects.filter(profiles_of(version.pk)).get(), worker)
    task = ProfileActions().build_task(attempt, {"folder": "."})
    contents = [
        Path(path).read_bytes()[-6:] for path in (task.path or "", *(part.path for part in task.more))
    ]
    assert contents == [b"0,1,1\n", b"1,1,1\n", b"2,1,1\n"]


READ_AGAIN = "/api/v1/datasets/people/versions/1/read?project=yard"


def read_again(client: Client, **body: Any) -> Any:
    return client.post(READ_AGAIN, body, content_type="application/json")


def requested_by(number: int) -> dict[str, Any]:
    request: dict[str, Any] = DatasetVersion.objects.get(dataset__slug="people", number=number).request
    return request


def test_a_version_is_read_again_with_other_columns_in_a_new_version(api: Client, world: World) -> None:
    first = [{"name": "age", "role": "weight"}, {"name": "bmi", "type": "number"}]
    send(api, columns=json.dumps(first), target="progression", max_bad_share="0.1")
    answer = read_again(api, columns=[{"name": "bmi", "role": "weight"}])
    assert answer.status_code == 201
    assert answer.json()["number"] == 2
    # Only one column has the role weight: it has moved, and age has no correction any more.
    assert requested_by(2)["columns"] == [{"name": "bmi", "role": "weight"}]
    assert requested_by(2)["target"] == "progression"
    assert requested_by(2)["reading"]["max_bad_share"] == 0.1
    before, after = DatasetVersion.objects.filter(dataset__slug="people").order_by("number")
    assert before.upload_id == after.upload_id


def test_a_column_that_becomes_the_target_takes_it_from_the_earlier_one(api: Client) -> None:
    send(api, target="progression", columns=json.dumps([{"name": "bmi", "role": "ignore"}]))
    read_again(api, columns=[{"name": "age", "role": "target"}])
    assert "target" not in requested_by(2)
    named = [(column["name"], column["role"]) for column in requested_by(2)["columns"]]
    assert named == [("bmi", "ignore"), ("age", "target")]
    read_again(api, target="bmi")
    assert requested_by(3)["target"] == "bmi"
    assert "columns" not in requested_by(3)


def test_another_dialect_drops_corrections_of_columns_that_may_have_other_names(api: Client) -> None:
    send(api, columns=json.dumps([{"name": "age", "role": "ignore"}]))
    read_again(api, dialect={"delimiter": ";"}, max_bad_share=0.25, rows_without_target="leave_out")
    request = requested_by(2)
    assert "columns" not in request
    assert request["rows_without_target"] == "leave_out"
    assert request["reading"]["dialect"]["delimiter"] == ";"
    assert request["reading"]["max_bad_share"] == 0.25


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"columns": [{"name": "age", "role": "king"}]}, "/columns/0/role"),
        ({"max_bad_share": 1.0}, "/max_bad_share"),
        ({"dialect": {"delimiter": "ab"}}, "/dialect/delimiter"),
        ({"rows": 1}, "/rows"),
        ({"task": "guessing"}, "/task"),
    ],
)
def test_an_invalid_reading_is_refused_with_its_field(
    api: Client, body: dict[str, Any], pointer: str
) -> None:
    send(api)
    answer = read_again(api, **body)
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert DatasetVersion.objects.filter(dataset__slug="people").count() == 1


def test_readers_and_strangers_read_no_version_again(api: Client, world: World) -> None:
    send(api)
    assert read_again(world.client(world.viewer)).status_code == 403
    assert read_again(world.client(world.stranger)).status_code == 404
