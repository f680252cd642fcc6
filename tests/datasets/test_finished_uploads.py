"""An upload in parts that is whole becomes a version, also after a failure or a restart."""

from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from jobs import upload_files
from jobs.actions.data import resumable_uploads
from jobs.models import Dataset, DatasetVersion, Project, ResumableUpload
from jobs.store import ObjectStore, store
from tests.datasets.test_resumable_uploads import CSV, SHA256, SIZE, client_of, files, key_of
from tests.datasets.tus import Body, TusClient
from tests.people import People, make_people


@pytest.fixture
def people(transactional_db: None) -> People:
    for path in store().incoming.iterdir():
        path.unlink()
    return make_people()


@pytest.fixture
async def member(people: People) -> TusClient:
    return await client_of(people.member)


async def test_a_refused_version_does_not_lose_the_upload(member: TusClient, people: People) -> None:
    await Dataset.objects.acreate(project=people.project, slug="taken", name="t", source="upload")
    place = await member.place(SIZE)
    early = await member.version(place)
    assert early.status == 422
    assert f"only 0 of the {SIZE:,} bytes" in early.json["detail"]
    await member.part(place, CSV, 0)
    assert (await member.version(place, sha256="0" * 64)).json["errors"][0]["pointer"] == "/sha256"
    assert (await member.version(place, slug="taken")).status == 409
    assert await member.offset(place) == SIZE
    assert (await member.part(place, b"", SIZE)).status == 409
    assert (await member.version(place, slug="free")).status == 201
    assert (await member.version(place, slug="again")).status == 422


async def test_a_server_that_was_killed_after_the_move_finds_the_file_in_the_store(
    member: TusClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = await member.place(SIZE)
    await member.part(place, CSV, 0)
    upload = await ResumableUpload.objects.aget()
    await sync_to_async(store().take)(upload_files.path_of(upload.pk), upload_files.digest_of(upload.pk))
    await ResumableUpload.objects.aupdate(sha256=SHA256)
    refused = await member.version(place, sha256="0" * 64)
    assert (refused.status, refused.json["errors"][0]["pointer"]) == (422, "/sha256")
    assert (await member.version(place)).status == 201
    assert files() == []


async def test_a_file_that_could_not_be_sent_to_object_storage_is_sent_by_the_next_request(
    member: TusClient, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TRAINYARD_HOME, settings.TRAINYARD_ARTIFACTS = tmp_path, f"memory://{tmp_path.name}"
    place = await member.place(SIZE)
    await member.part(place, CSV, 0)
    objects = store()
    assert isinstance(objects, ObjectStore)
    with monkeypatch.context() as patch:
        patch.setattr(objects.fs, "put_file", unreachable)
        with pytest.raises(OSError, match="unreachable"):
            await sync_to_async(store_again)(place)
        assert files() == []
        with pytest.raises(OSError, match="unreachable"):
            await sync_to_async(store_again)(place)
    assert not await DatasetVersion.objects.aexists()
    # All bytes have arrived, so a client need not send them again.
    assert await member.offset(place) == SIZE
    assert (await member.part(place, b"", SIZE)).status == 409
    assert files() == []
    assert (await member.version(place)).status == 201
    assert [(entry.digest, entry.bytes) for entry in objects.files()] == [(SHA256, SIZE)]


def unreachable(*args: object, **kwargs: object) -> None:
    raise OSError("the object storage is unreachable")


def store_again(place: str) -> None:
    upload = ResumableUpload.objects.select_related("project", "artifact").get(pk=key_of(place))
    resumable_uploads.store_received(upload, upload.project)


async def test_an_upload_is_used_in_its_own_project(member: TusClient, people: People) -> None:
    await sync_to_async(people.project.memberships.model.objects.create)(
        project=await Project.objects.aget(slug="elsewhere"), user=people.member, role="member"
    )
    place = await member.place(4)
    await member.part(place, b"a\n1\n", 0)
    refused = await member.version(place, project="elsewhere")
    assert (refused.status, refused.json["errors"][0]["pointer"]) == (422, "/upload")
    assert (await member.version(place)).status == 201
    version = await member.place(4)
    await member.part(version, b"a\n2\n", 0)
    answer = await member.form("/api/v1/datasets/s/versions?project=yard", upload=key_of(version))
    assert (answer.status, answer.json["number"]) == (201, 2)


async def test_a_file_whose_content_is_of_another_format_is_refused(member: TusClient) -> None:
    place = await member.place(4, name="a.parquet")
    await member.part(place, b"a\n1\n", 0)
    refused = await member.version(place)
    assert refused.status == 422
    assert "does not contain Parquet data" in refused.json["detail"]


async def test_a_file_and_an_upload_at_once_are_refused(member: TusClient) -> None:
    body = Body(
        b'--x\r\nContent-Disposition: form-data; name="project"\r\n\r\nyard\r\n'
        b'--x\r\nContent-Disposition: form-data; name="slug"\r\n\r\ns\r\n'
        b'--x\r\nContent-Disposition: form-data; name="upload"\r\n\r\nk\r\n'
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\na\n1\n\r\n--x--\r\n'
    )
    answer = await member.ask(
        "POST", "/api/v1/datasets", body, content_type="multipart/form-data; boundary=x"
    )
    assert (answer.status, answer.json["errors"][0]["pointer"]) == (422, "/upload")


async def test_several_uploads_are_one_version_in_the_order_of_the_form(member: TusClient) -> None:
    places = [await member.place(4, name=f"part-{i}.csv") for i in range(2)]
    for number, place in enumerate(places):
        await member.part(place, b"a\n%d\n" % number, 0)
    keys = " ".join(map(key_of, reversed(places)))
    answer = await member.form("/api/v1/datasets", project="yard", slug="s", upload=keys)
    assert answer.status == 201, answer.body
    version = await member.ask("GET", "/api/v1/datasets/s/versions/1?project=yard")
    assert version.json["files"] == ["part-1.csv", "part-0.csv"]
    assert not await ResumableUpload.objects.aexists()
    twice = f"{key_of(await member.place(4))} " * 2
    refused = await member.form("/api/v1/datasets", project="yard", slug="t", upload=twice.strip())
    assert (refused.status, refused.json["errors"][0]["pointer"]) == (422, "/upload")
