"""Data sets over REST: the bundled ones, and uploads that only a worker opens."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings as SettingsWrapper

from jobs.actions.data import datasets, profiles
from jobs.kinds.profile.rows import profiles_of
from jobs.models import Dataset, DatasetVersion, IdempotencyKey, Job
from jobs.store import LocalStore, StoredFile, store
from tests.datasets.making import DIABETES, make_ready
from tests.world import World

CSV = b"age,bmi,progression\n59,32.1,151\n48,21.6,75\n"


@pytest.fixture
def api(world: World) -> Client:
    return world.client(world.owner)


def send(client: Client, content: bytes = CSV, file: str = "people.csv", key: str = "", **fields: Any) -> Any:
    form = {"project": "yard", "slug": "people", "file": SimpleUploadedFile(file, content), **fields}
    return client.post("/api/v1/datasets", form, headers={"Idempotency-Key": key} if key else {})


def call_while_storing(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    put = LocalStore.put

    def observed(store: LocalStore, path: Path) -> StoredFile:
        act()
        return put(store, path)

    monkeypatch.setattr(LocalStore, "put", observed)


def archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("x.npy", b"")
    return buffer.getvalue()


def test_the_bundled_data_sets_are_listed_for_everyone(world: World) -> None:
    items = world.client(world.stranger).get("/api/v1/datasets").json()["items"]
    assert [item["slug"] for item in items] == ["breast_cancer", "diabetes", "digits", "iris", "wine"]
    assert {item["project"] for item in items} == {None}


def test_making_the_bundled_ones_again_changes_nothing(world: World) -> None:
    before = (DatasetVersion.objects.count(), Job.objects.count())
    datasets.ensure_bundled()
    assert (DatasetVersion.objects.count(), Job.objects.count()) == before


def test_a_ready_version_shows_schema_and_rows(api: Client) -> None:
    version = api.get("/api/v1/datasets/digits/versions/1").json()
    assert (version["state"], version["rows"], version["schema"]["outputs"]) == ("ready", 1797, 10)
    preview = api.get("/api/v1/datasets/digits/versions/1/preview").json()
    assert preview["columns"] == ["image", "digit"]
    assert len(preview["rows"]) == 3


def test_a_file_with_a_key_is_stored_before_the_transaction_of_its_rows(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    depths: list[int] = []
    before = len(connection.savepoint_ids)
    call_while_storing(monkeypatch, lambda: depths.append(len(connection.savepoint_ids)))
    answers = [send(api, key="k1") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[1]["Idempotency-Replayed"] == "true"
    assert depths == [before]


def test_an_upload_whose_key_a_repetition_took_over_writes_nothing(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_while_storing(monkeypatch, lambda: IdempotencyKey.objects.update(created=timezone.now()))
    answer = send(api, key="k1")
    assert (answer.status_code, answer.json()["code"]) == (409, "in_flight")
    assert not Dataset.objects.filter(slug="people").exists()
    assert IdempotencyKey.objects.exists(), "it is that of the repetition"


@pytest.mark.parametrize("features", ['age, "dist, km"', ["age", '"dist, km"'], 'age\n"dist, km"'])
def test_a_feature_with_a_comma_in_its_name_is_in_quotes(api: Client, features: str | list[str]) -> None:
    assert send(api, features=features).status_code == 201
    version = DatasetVersion.objects.get(dataset__slug="people")
    assert version.request["features"] == ["age", "dist, km"]


def test_a_list_of_features_that_cannot_be_read_is_refused_with_the_form_of_one(api: Client) -> None:
    answer = send(api, features='age, "dist, km')
    assert answer.status_code == 422, answer.content
    (problem,) = answer.json()["errors"]
    assert problem["pointer"] == "/features"
    assert 'put a name with a comma in quotes: "dist, km"' in problem["message"]


def test_a_field_with_one_value_that_is_sent_twice_is_refused(api: Client) -> None:
    answer = send(api, target=["age", "bmi"])
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/target")


def test_an_upload_is_stored_unchanged_and_profiled_by_a_worker(api: Client) -> None:
    answer = send(api, target="progression", features="age, bmi")
    assert answer.status_code == 201, answer.content
    assert answer.json()["latest"] == {"number": 1, "state": "preparing", "digest": None, "rows": None}
    version = DatasetVersion.objects.get(dataset__slug="people")
    assert version.upload is not None
    assert store().path(version.upload.digest).read_bytes() == CSV
    assert version.request["features"] == ["age", "bmi"]
    assert Job.objects.filter(profiles_of(version.pk)).count() == 1


def test_the_next_upload_is_the_next_version(api: Client) -> None:
    send(api)
    form = {"file": SimpleUploadedFile("more.csv", CSV + b"1,2,3\n")}
    answer = api.post("/api/v1/datasets/people/versions?project=yard", form)
    assert (answer.status_code, answer.json()["number"]) == (201, 2)
    listed = api.get("/api/v1/datasets/people/versions").json()["items"]
    assert [item["number"] for item in listed] == [2, 1]


def test_a_taken_slug_is_a_conflict(api: Client) -> None:
    send(api)
    assert send(api).status_code == 409


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("people.exe", CSV),
        ("people.csv", b""),
        ("people.csv", b"a,b\n\x02\x03"),
        ("people.csv", b"a,b" + bytes(20)),
        ("people.csv", b"SQLite format 3\0"),
        ("people.npz", CSV),
        ("people.parquet", b"PAR1 but then nothing"),
    ],
)
def test_a_file_that_does_not_match_its_name_is_refused(api: Client, name: str, content: bytes) -> None:
    answer = send(api, content, name)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/file")


def test_a_wrong_digest_is_refused(api: Client) -> None:
    answer = send(api, sha256="0" * 64)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/sha256")


def test_an_upload_above_the_limit_is_413(api: Client, settings: SettingsWrapper) -> None:
    settings.TRAINYARD_MAX_UPLOAD_BYTES = 100
    assert send(api).status_code == 413


@pytest.mark.parametrize(("field", "value"), [("slug", "Not a slug"), ("task", "guessing"), ("name", "a\0b")])
def test_bad_fields_are_named(api: Client, field: str, value: Any) -> None:
    fields: dict[str, Any] = {field: value}
    answer = send(api, **fields)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, f"/{field}")


def test_a_nul_in_a_field_is_not_reported_as_a_missing_field(api: Client) -> None:
    assert "NUL" in send(api, name="a\0b").json()["detail"]


def test_a_failed_profile_names_the_file_and_can_be_retried(api: Client, world: World) -> None:
    send(api)
    version = DatasetVersion.objects.get(dataset__slug="people")
    assert version.upload is not None
    message = f"{version.upload.digest} is not a readable CSV file"
    profiles.record_profile_failure(version.pk, {"code": "bad_data", "message": message})
    Job.objects.update(state="failed")
    version_out = api.get("/api/v1/datasets/people/versions/1").json()
    assert (version_out["state"], version_out["error"]["message"]) == (
        "failed",
        "people.csv is not a readable CSV file",
    )
    version.refresh_from_db()
    profiles.profile_again(version, by=world.owner)
    version.refresh_from_db()
    assert version.state == "preparing"


def test_a_refused_upload_shows_the_reason_and_no_code_of_the_worker(api: Client) -> None:
    send(api)
    version = DatasetVersion.objects.get(dataset__slug="people")
    error = {
        "code": "bad_data",
        "message": "the file has no rows",
        "traceback": 'File "/srv/table.py", line 7',
    }
    profiles.record_profile_failure(version.pk, error)
    error_out = api.get("/api/v1/datasets/people/versions/1").json()["error"]
    assert error_out == {"code": "bad_data", "message": "the file has no rows"}


def test_other_roles_are_a_new_version_of_the_same_bytes(api: Client, world: World) -> None:
    send(api)
    version = make_ready(DatasetVersion.objects.get(dataset__slug="people"), DIABETES)
    again = datasets.set_roles(version, datasets.Roles(target="age"), by=world.owner)
    assert (again.number, again.upload, again.request["target"]) == (2, version.upload, "age")


def test_a_bundled_data_set_cannot_be_changed(api: Client) -> None:
    answer = api.post("/api/v1/datasets/iris/versions", {"file": SimpleUploadedFile("a.csv", CSV)})
    assert answer.status_code == 403


def test_a_viewer_may_not_upload_and_a_stranger_sees_nothing(world: World, api: Client) -> None:
    send(api)
    assert send(world.client(world.viewer)).status_code == 403
    stranger = world.client(world.stranger)
    assert send(stranger).status_code == 404
    for path in ("", "/versions", "/versions/1", "/versions/1/preview"):
        assert stranger.get(f"/api/v1/datasets/people{path}").status_code == 404
