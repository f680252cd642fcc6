"""Uploads in parts by the tus protocol: what has arrived is kept, and moved to the store once it is whole."""

import asyncio
import base64
import hashlib
import os
import time
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from jobs import upload_files
from jobs.actions.people import tokens
from jobs.errors import NotFound
from jobs.models import DatasetVersion, ResumableUpload, UploadReservation, User
from jobs.store import store
from tests.datasets.tus import KIB, Body, TusClient
from tests.people import People, make_people
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
    upload_out = (await member.ask("GET", place)).json
    assert (upload_out["file"], upload_out["offset"], upload_out["length"], upload_out["project"]) == (
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
    """A body with a pause: the rest waits for `goes_on`."""

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
