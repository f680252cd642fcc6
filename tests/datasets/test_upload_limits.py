"""Limits of uploads in parts: space, quotas, expiry and rights."""

import errno
import os
import shutil
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from jobs import clock, upload_files
from jobs.actions.data import resumable_uploads
from jobs.models import Project, ResumableUpload, UploadReservation
from jobs.queries.people import quotas
from jobs.store import store
from tests.datasets.test_resumable_uploads import CSV, SHA256, SIZE, client_of, files, key_of
from tests.datasets.tus import Body, TusClient
from tests.people import People, browser_of, make_people


@pytest.fixture
def people(transactional_db: None) -> People:
    for path in store().incoming.iterdir():
        path.unlink()
    return make_people()


@pytest.fixture
async def member(people: People) -> TusClient:
    return await client_of(people.member)


@sync_to_async
def limit(project: Project, **limits: int) -> None:
    Project.objects.filter(pk=project.pk).update(**limits)


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
    place, unexpired = await member.place(SIZE), await member.place(SIZE)
    await member.part(place, CSV[:5], 0)
    await member.part(unexpired, CSV[:5], 0)
    await ResumableUpload.objects.filter(pk=key_of(place)).aupdate(until=clock.now() - timedelta(seconds=1))
    assert (await member.ask("HEAD", place)).status == 404
    assert (await member.part(place, CSV[5:], 5)).status == 404
    orphan = upload_files.path_of("f" * 32)
    orphan.write_bytes(b"x")
    os.utime(orphan, (1, 1))
    old = upload_files.path_of(key_of(unexpired))
    os.utime(old, (1, 1))
    assert await sync_to_async(resumable_uploads.collect)() == 1
    assert files() == [key_of(unexpired)]
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
