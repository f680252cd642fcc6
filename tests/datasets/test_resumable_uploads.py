"""Uploads in parts by the tus protocol: what has arrived is kept, and moved to the store once it is whole."""

import asyncio
import base64
import errno
import hashlib
import os
import shutil
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from jobs import clock, upload_files
from jobs.actions.data import resumable_uploads
from jobs.actions.people import tokens
from jobs.errors import NotFound
from jobs.models import Dataset, DatasetVersion, Project, ResumableUpload, UploadReservation, User
from jobs.queries.people import quotas
from jobs.store import ObjectStore, store
from tests.datasets.tus import KIB, Body, TusClient
from tests.people import People, browser_of, make_people
from webapp.limits import parts

CSV = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(30_000))
SIZE = len(CSV)
SHA256 = hashlib.sha256(CSV).hexdigest()
HALF = SIZE // 2


@pytest.fixture
def people(transactional_db: None) -> People:
    for path in store().incoming.iterdir():
        path.unlink()
    return make_people()


@sync_to_async
def client_of(user: User, *scopes: str) -> TusClient:
    return TusClient(f"Bearer {tokens.create(user, by=None, scopes=scopes or ('read', 'write'))[1]}")


@pytest.fixture
async def member(people: People) -> TusClient:
    return await client_of(people.member)


@sync_to_async
def limit(project: Project, **limits: int) -> None:
    Project.objects.filter(pk=project.pk).update(**limits)


def files() -> list[str]:
    return [path.name for path in store().incoming.iterdir()]


def key_of(place: str) -> str:
    return place.rsplit("/", 1)[-1]


async def test_a_file_in_three_parts_becomes_a_version_without_a_copy(
    member: TusClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = CSV + b"%d,1\n" % time.time_ns()  # no other test has stored this file
    size, digest = len(content), hashlib.sha256(content).hexdigest()
    place = await member.place(size)
    inode = None
    for begin, end in ((0, 70_000), (70_000, 70_000), (70_000, size)):
        answer = await member.part(place, content[begin:end], begin)
        assert (answer.status, answer.headers["upload-offset"]) == (204, str(end)), answer.body
        assert answer.headers["tus-resumable"] == "1.0.0"
        inode = upload_files.path_of(key_of(place)).stat().st_ino
    # The digest was computed while the file arrived.
    monkeypatch.setattr(upload_files, "sha256_of", None)
    answer = await member.version(place)
    assert answer.status == 201, answer.body
    version = await DatasetVersion.objects.select_related("upload").aget(dataset__slug="s")
    assert (version.upload.digest, version.upload.bytes) == (digest, size)  # type: ignore[union-attr]
    assert version.request["file"] == "a.csv"
    assert store().path(digest).stat().st_ino == inode
    assert files() == []
    assert not await ResumableUpload.objects.aexists()
    assert not await UploadReservation.objects.aexists()


async def test_what_arrived_of_a_broken_part_is_kept(member: TusClient) -> None:
    place = await member.place(SIZE)
    answer = await member.part(place, CSV, 0, cut=100 * KIB)
    assert answer.status == 0
    assert await member.offset(place) == 100 * KIB
    assert (await member.part(place, CSV[100 * KIB :], 100 * KIB)).status == 204
    assert (await member.version(place, sha256=SHA256)).status == 201


async def test_the_digest_is_read_from_the_file_after_a_restart(member: TusClient) -> None:
    place = await member.place(SIZE)
    await member.part(place, CSV[:HALF], 0)
    upload_files._digests.clear()
    await member.part(place, CSV[HALF:], HALF)
    assert (await member.version(place)).status == 201
    assert await DatasetVersion.objects.filter(upload=SHA256).aexists()


async def test_the_offset_and_the_protocol_are_described(
    member: TusClient, people: People, settings: Settings
) -> None:
    place = await member.place(SIZE, name="übung.csv")
    await member.part(place, CSV[:9], 0)
    head = await member.ask("HEAD", place)
    assert (head.status, head.headers["upload-offset"], head.headers["upload-length"]) == (
        200,
        "9",
        str(SIZE),
    )
    assert head.headers["cache-control"] == "no-store"
    assert "GMT" in head.headers["upload-expires"]
    filename = base64.b64encode("übung.csv".encode()).decode()
    assert head.headers["upload-metadata"] == f"filename {filename},project eWFyZA=="
    shown = (await member.ask("GET", place)).json
    assert (shown["file"], shown["offset"], shown["length"], shown["project"]) == (
        "übung.csv",
        9,
        SIZE,
        "yard",
    )
    listed = (await member.ask("GET", "/api/v1/uploads?project=yard")).json["items"]
    assert [upload["id"] for upload in listed] == [key_of(place)]
    options = await member.ask("OPTIONS", "/api/v1/uploads", tus_resumable="")
    assert (options.status, options.headers["tus-version"]) == (204, "1.0.0")
    assert options.headers["tus-extension"] == "creation,termination,expiration,checksum"
    assert options.headers["tus-max-size"] == str(settings.TRAINYARD_MAX_RESUMABLE_BYTES)
    writer = await client_of(people.member, "write")
    assert await writer.offset(place) == 9


async def test_a_part_that_does_not_fit_is_refused_and_changes_nothing(member: TusClient) -> None:
    place = await member.place(SIZE)
    await member.part(place, CSV[:10], 0)
    wrong: list[tuple[int, dict[str, Any]]] = [
        (409, {"upload_offset": "9"}),
        (409, {"upload_offset": "11"}),
        (413, {}),
        (415, {"content_type": "application/octet-stream"}),
        (412, {"tus_resumable": "0.2.2"}),
        (412, {"tus_resumable": ""}),
        (422, {"upload_offset": "-1"}),
        (422, {"upload_offset": "9" * 400}),
        (422, {"upload_checksum": "md4 AAAA"}),
        (422, {"upload_checksum": "sha1 ü"}),
    ]
    for status, headers in wrong:
        content = CSV if status == 413 else CSV[10:20]
        answer = await member.part(place, content, 10, **headers)
        assert (answer.status, answer.json["status"]) == (status, status), headers
        assert answer.headers["tus-version"] == "1.0.0"
    long = await member.ask(
        "PATCH",
        place,
        Body(CSV),
        announced=False,
        content_type="application/offset+octet-stream",
        upload_offset="10",
    )
    assert (long.status, long.json["code"]) == (413, "too_large")
    # The blocks before the one that is too long belong to the file.
    assert 10 <= await member.offset(place) <= SIZE


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
async def test_a_part_counts_only_if_its_checksum_is_right(member: TusClient, algorithm: str) -> None:
    def checksum(content: bytes) -> str:
        return f"{algorithm} {base64.b64encode(hashlib.new(algorithm, content).digest()).decode()}"

    place = await member.place(SIZE)
    first = CSV[:HALF]
    assert (await member.part(place, first, 0, upload_checksum=checksum(first))).status == 204
    damaged = CSV[HALF:-1] + b"?"
    wrong = await member.part(place, damaged, HALF, upload_checksum=checksum(CSV[HALF:]))
    assert (wrong.status, wrong.json["code"]) == (460, "wrong_checksum")
    assert await member.offset(place) == HALF
    await member.part(place, CSV[HALF:], HALF, cut=100 * KIB, upload_checksum=checksum(CSV[HALF:]))
    assert await member.offset(place) == HALF
    # The server was killed in the middle of such a part.
    path = upload_files.path_of(key_of(place))
    path.with_name(path.name + upload_files.UNVERIFIED).write_text(str(HALF))
    path.write_bytes(path.read_bytes() + b"?" * 100)
    assert await member.offset(place) == HALF
    assert (await member.part(place, CSV[HALF:], HALF)).status == 204
    assert (await member.version(place, sha256=SHA256)).status == 201


async def test_one_request_at_a_time_appends(member: TusClient) -> None:
    place = await member.place(SIZE)
    with upload_files.locked_file(key_of(place)):
        answer = await member.part(place, CSV, 0)
        assert (answer.status, answer.json["code"]) == (423, "locked")
    assert (await member.part(place, CSV, 0)).status == 204


async def test_an_upload_is_not_deleted_while_a_part_arrives(member: TusClient) -> None:
    place = await member.place(SIZE)
    body = PausedBody(CSV, pause_at=HALF)
    headers: dict[str, Any] = {"content_type": "application/offset+octet-stream", "upload_offset": "0"}
    sending = asyncio.create_task(member.ask("PATCH", place, body, **headers))
    await body.is_paused.wait()
    refused = await member.ask("DELETE", place)
    assert (refused.status, refused.json["code"]) == (423, "locked")
    assert await UploadReservation.objects.aexists()
    assert key_of(place) in files()
    body.goes_on.set()
    assert (await sending).status == 204
    assert (await member.ask("DELETE", place)).status == 204
    assert files() == []


class PausedBody(Body):
    """A body of which the rest waits for `goes_on`."""

    def __init__(self, content: bytes, *, pause_at: int) -> None:
        super().__init__(content)
        self._pause_at = pause_at
        self.is_paused, self.goes_on = asyncio.Event(), asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        if self.sent >= self._pause_at:
            self.is_paused.set()
            await self.goes_on.wait()
        return await super().receive()


def test_a_part_ends_when_its_file_is_deleted(people: People) -> None:
    with upload_files.Part("k", offset=0, length=100) as part:
        part.write(b"1234")
        upload_files.path_of("k").unlink()
        with pytest.raises(NotFound, match="deleted"):
            part.write(b"5678")
        assert os.fstat(part._file.fileno()).st_size == 4
    assert files() == []


async def test_a_part_of_an_upload_that_was_deleted_before_its_first_byte_is_not_read(people: People) -> None:
    body = Body(CSV)
    with pytest.raises(NotFound, match="deleted"):
        await parts._receive_part(upload_files.Part("k", offset=0, length=SIZE), body.receive)
    assert (body.sent, files()) == (0, [])


async def test_a_part_ends_when_its_upload_has_no_row_any_more(
    member: TusClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "EXTEND_SECONDS", 0.0)
    place = await member.place(SIZE)
    body = PausedBody(CSV, pause_at=HALF)
    headers: dict[str, Any] = {"content_type": "application/offset+octet-stream", "upload_offset": "0"}
    sending = asyncio.create_task(member.ask("PATCH", place, body, **headers))
    await body.is_paused.wait()
    await ResumableUpload.objects.all().adelete()
    body.goes_on.set()
    assert (await sending).status == 404
    assert body.sent < SIZE
    assert files() == []


async def test_an_expired_upload_that_is_in_use_is_collected_later(member: TusClient) -> None:
    key = key_of(await member.place(SIZE))
    await ResumableUpload.objects.aupdate(until=clock.now() - timedelta(seconds=1))
    with upload_files.locked_file(key):
        assert await sync_to_async(resumable_uploads.collect)() == 0
    assert await sync_to_async(resumable_uploads.collect)() == 1


async def test_an_upload_that_cannot_be_used_is_refused_before_it_is_sent(
    member: TusClient, people: People, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TRAINYARD_MAX_RESUMABLE_BYTES = 1000
    settings.TRAINYARD_MAX_UPLOAD_BYTES = 10
    assert (await member.begin(1000)).status == 201
    assert (await member.begin(1001)).status == 413
    assert (await member.begin(9, name="a.exe")).status == 422
    assert (await member.begin(9, name="photos")).status == 201
    assert (await member.begin(9, upload_length="")).status == 422
    for metadata in (
        "",
        "filename YS5jc3Y=",
        "filename YS5jc3Y=,project ?",
        "filename YQA=,project eWFyZA==",
    ):
        assert (await member.begin(9, upload_metadata=metadata)).status == 422, metadata
    assert (await member.begin(9, project="elsewhere")).status == 404
    assert (await (await client_of(people.viewer)).begin(9)).status == 403
    assert (await (await client_of(people.member, "read")).begin(9)).status == 403
    full = shutil._ntuple_diskusage(10**9, 10**9 - 5, 5)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    settings.TRAINYARD_MIN_FREE_BYTES = 1
    refused = await member.begin(900)
    assert (refused.status, refused.json["code"]) == (507, "disk_full")
    assert "room for 0 bytes of uploads, and this file has 900 bytes" in refused.json["detail"]


async def test_the_rest_of_other_uploads_needs_space_too(
    member: TusClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TRAINYARD_MIN_FREE_BYTES = 0
    place = await member.place(1000)
    await member.part(place, CSV[:400], 0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9000, 8000, 1000))
    assert (await member.begin(401)).status == 507
    assert (await member.begin(400)).status == 201


async def test_a_disk_that_becomes_full_keeps_what_has_arrived(
    member: TusClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = await member.place(SIZE)
    write = os.write

    def full(file: int, data: Any) -> int:
        monkeypatch.setattr(os, "write", no_space)
        return write(file, data[:7])

    def no_space(file: int, data: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    answer = await member.part(place, CSV, 0)
    assert (answer.status, answer.json["code"]) == (507, "disk_full")
    monkeypatch.setattr(os, "write", write)
    assert await member.offset(place) == 7
    await member.part(place, CSV[7:], 7)
    assert (await member.version(place, sha256=SHA256)).status == 201


async def test_an_upload_counts_against_the_quotas_until_it_is_deleted(
    member: TusClient, people: People
) -> None:
    await limit(people.project, max_bytes=1000, max_uploads=2)
    place = await member.place(600)
    used = await sync_to_async(quotas.quotas_out)(people.project)
    assert (used.bytes.used, used.uploads.used) == (600, 1)
    refused = await member.begin(401)
    assert (refused.status, refused.json["code"]) == (409, "quota_reached")
    await member.place(1)
    assert (await member.begin(1)).json["code"] == "quota_reached"
    await member.part(place, CSV[:5], 0)
    assert (await member.ask("DELETE", place)).status == 204
    assert key_of(place) not in files()
    assert (await member.ask("HEAD", place)).status == 404
    assert (await member.begin(900)).status == 201


async def test_an_abandoned_upload_expires_and_is_collected(member: TusClient) -> None:
    place, kept = await member.place(SIZE), await member.place(SIZE)
    await member.part(place, CSV[:5], 0)
    await member.part(kept, CSV[:5], 0)
    await ResumableUpload.objects.filter(pk=key_of(place)).aupdate(until=clock.now() - timedelta(seconds=1))
    assert (await member.ask("HEAD", place)).status == 404
    assert (await member.part(place, CSV[5:], 5)).status == 404
    orphan = upload_files.path_of("f" * 32)
    orphan.write_bytes(b"x")
    os.utime(orphan, (1, 1))
    old = upload_files.path_of(key_of(kept))
    os.utime(old, (1, 1))
    assert await sync_to_async(resumable_uploads.collect)() == 1
    assert files() == [key_of(kept)]
    assert await UploadReservation.objects.acount() == 1


async def test_a_part_keeps_an_upload_from_expiring(member: TusClient) -> None:
    place = await member.place(SIZE)
    soon = clock.now() + timedelta(minutes=1)
    await ResumableUpload.objects.aupdate(until=soon)
    await UploadReservation.objects.aupdate(until=soon)
    await member.part(place, CSV[:5], 0)
    later = clock.now() + timedelta(hours=23)
    assert await ResumableUpload.objects.filter(until__gt=later).aexists()
    assert await UploadReservation.objects.filter(until__gt=later).aexists()


async def test_only_its_author_and_administrators_reach_an_upload(member: TusClient, people: People) -> None:
    place = await member.place(SIZE)
    for other in (people.stranger, people.viewer, people.trainer):
        client = await client_of(other)
        assert (await client.ask("HEAD", place)).status == 404
        assert (await client.part(place, CSV, 0)).status == 404
        assert (await client.ask("DELETE", place)).status == 404
        assert (await client.ask("GET", "/api/v1/uploads")).json["items"] == []
    trainer = await client_of(people.trainer)
    refused = await trainer.version(place)
    assert (refused.status, refused.json["errors"][0]["pointer"]) == (422, "/upload")
    owner = await client_of(people.owner)
    assert (await owner.ask("DELETE", place)).status == 204


async def test_a_session_needs_its_csrf_token(people: People, settings: Settings) -> None:
    browser = await sync_to_async(browser_of)(people.member)
    name = settings.SESSION_COOKIE_NAME
    client = TusClient("", cookie=f"{name}={browser.cookies[name].value}")
    refused = await client.begin(9)
    assert (refused.status, refused.json["code"]) == (401, "csrf_failed")
    assert (await TusClient("").begin(9)).status == 401


async def test_a_part_of_a_caller_without_rights_is_not_read(member: TusClient, people: People) -> None:
    place = await member.place(SIZE)
    body = Body(CSV)
    headers: dict[str, Any] = {"content_type": "application/offset+octet-stream", "upload_offset": "0"}
    viewer = await client_of(people.viewer)
    assert (await viewer.ask("PATCH", place, body, **headers)).status == 404
    assert body.sent == 0


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
    made = await member.form("/api/v1/datasets/s/versions?project=yard", upload=key_of(version))
    assert (made.status, made.json["number"]) == (201, 2)


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
    made = await member.form("/api/v1/datasets", project="yard", slug="s", upload=keys)
    assert made.status == 201, made.body
    shown = await member.ask("GET", "/api/v1/datasets/s/versions/1?project=yard")
    assert shown.json["files"] == ["part-1.csv", "part-0.csv"]
    assert not await ResumableUpload.objects.aexists()
    twice = f"{key_of(await member.place(4))} " * 2
    refused = await member.form("/api/v1/datasets", project="yard", slug="t", upload=twice.strip())
    assert (refused.status, refused.json["errors"][0]["pointer"]) == (422, "/upload")
