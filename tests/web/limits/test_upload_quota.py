"""An upload that its project has no room for is refused before Django stores its body."""

import asyncio
import json
import threading
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from jobs.actions.data import uploads
from jobs.actions.people import tokens
from jobs.models import Project, UploadReservation
from tests.factories import make_model
from tests.people import People, make_people
from webapp.asgi import application
from webapp.limits import uploads as early
from webapp.limits.uploads import FORM_BYTES

MIB = 2**20
BOUNDARY = "limit"


@pytest.fixture
def people(transactional_db: None) -> People:
    return make_people()


@pytest.fixture
async def bearer(people: People) -> str:
    return (
        f"Bearer {(await sync_to_async(tokens.create)(people.member, by=None, scopes=('write', 'read')))[1]}"
    )


def form(size: int, **fields: str) -> bytes:
    """Return a multipart form with a `size`-byte file."""
    parts = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
    return "".join([*parts, head]).encode() + b"a,b\n" * (size // 4) + f"\r\n--{BOUNDARY}--\r\n".encode()


class Upload:
    """Sends one upload in parts. `sent` counts the bytes that the server has read."""

    def __init__(
        self, path: str, body: bytes, bearer: str, *, announced: bool = True, **headers: str
    ) -> None:
        self.path, _, self.query = path.partition("?")
        self.body, self.sent = body, 0
        self.headers = {
            "host": "localhost",
            "authorization": bearer,
            "content-type": f"multipart/form-data; boundary={BOUNDARY}",
            **({"content-length": str(len(body))} if announced else {}),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        self.status, self.answer = 0, b""
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def send(self) -> dict[str, Any]:
        """Return the answer."""
        scope = {
            "type": "http",
            "method": "POST",
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": self.query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in self.headers.items()],
        }
        async with asyncio.timeout(30):
            await application(scope, self._receive, self._send)
        return json.loads(self.answer)

    async def _receive(self) -> dict[str, Any]:
        if self.sent >= len(self.body):
            await asyncio.Event().wait()
        if self.sent + FORM_BYTES >= len(self.body):
            await self.may_end.wait()
        part = self.body[self.sent : self.sent + FORM_BYTES]
        self.sent += len(part)
        return {"type": "http.request", "body": part, "more_body": self.sent < len(self.body)}

    async def _send(self, message: dict[str, Any]) -> None:
        self.status = message.get("status", self.status)
        self.answer += message.get("body", b"")


@sync_to_async
def set_quota(project: Project, **limits: int) -> None:
    Project.objects.filter(pk=project.pk).update(**limits)


@sync_to_async
def reserved() -> list[int]:
    return list(UploadReservation.objects.values_list("bytes", flat=True))


@pytest.mark.parametrize("quota", [{"max_bytes": MIB // 2}, {"max_uploads": 1}])
@pytest.mark.parametrize("place", ["address", "form"])
async def test_an_upload_without_room_is_refused_before_its_body_is_stored(
    people: People, bearer: str, quota: dict[str, int], place: str
) -> None:
    await set_quota(people.project, **quota)
    if "max_uploads" in quota:
        await sync_to_async(uploads.reserve)(people.project, 1)
    fields = {"slug": "s", "project": "yard"} if place == "form" else {}
    path = "/api/v1/datasets" if place == "form" else "/api/v1/datasets/s/versions?project=yard"
    upload = Upload(path, form(MIB, **fields), bearer)
    answer = await upload.send()
    assert (upload.status, answer["code"], answer["status"]) == (409, "quota_reached", 409)
    assert upload.sent <= (FORM_BYTES if place == "form" else 0)
    elsewhere = Upload("/api/v1/datasets", form(MIB, slug="s", project="elsewhere"), bearer)
    await sync_to_async(people.project.memberships.model.objects.create)(
        project=await Project.objects.aget(slug="elsewhere"), user=people.member, role="member"
    )
    await elsewhere.send()
    assert elsewhere.status == 201


async def test_the_model_in_the_address_names_the_project(people: People, bearer: str) -> None:
    await sync_to_async(make_model)("m", project=people.project, by=people.owner)
    await set_quota(people.project, max_bytes=1000)
    upload = Upload("/api/v1/models/m/versions", form(MIB), bearer)
    assert (await upload.send())["code"] == "quota_reached"
    assert upload.sent == 0


@pytest.mark.parametrize("announced", [True, False])
async def test_an_upload_counts_while_its_body_is_read(
    people: People, bearer: str, monkeypatch: pytest.MonkeyPatch, announced: bool
) -> None:
    monkeypatch.setattr(early, "RENEW_SECONDS", 0.01)
    body = form(MIB, slug="s", project="yard")
    upload = Upload("/api/v1/datasets", body, bearer, announced=announced)
    upload.may_end.clear()
    sending = asyncio.create_task(upload.send())
    # Without an announced length, the bytes received so far count.
    async with asyncio.timeout(20):
        while not (sizes := await reserved()) or abs(sizes[0] + FORM_BYTES - len(body)) > FORM_BYTES:
            await asyncio.sleep(0.01)
    await set_quota(people.project, max_uploads=1)
    second = Upload("/api/v1/datasets", form(MIB, slug="t", project="yard"), bearer)
    assert (await second.send())["code"] == "quota_reached"
    upload.may_end.set()
    await sending
    # Django reads no form without an announced length.
    assert (upload.status, await reserved()) == (201 if announced else 422, [])


async def test_an_upload_that_fits_exactly_is_accepted(people: People, bearer: str) -> None:
    await set_quota(people.project, max_bytes=MIB)
    upload = Upload("/api/v1/datasets", form(MIB, slug="s", project="yard"), bearer)
    await upload.send()
    assert (upload.status, await reserved()) == (201, [])


async def test_a_client_that_disconnects_frees_its_room(people: People, bearer: str) -> None:
    upload = Upload("/api/v1/datasets", form(MIB, slug="s", project="yard"), bearer)
    upload.may_end.clear()
    sending = asyncio.create_task(upload.send())
    async with asyncio.timeout(20):
        while not await reserved():
            await asyncio.sleep(0.01)
    sending.cancel()
    await asyncio.wait({sending})
    assert await reserved() == []


async def test_a_client_that_disconnects_while_room_is_reserved_frees_it(
    people: People, bearer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve, is_reserved, may_answer = uploads.reserve, threading.Event(), threading.Event()

    def slow_reserve(project: Project, size: int) -> int:
        key = reserve(project, size)
        is_reserved.set()
        assert may_answer.wait(20)
        return key

    monkeypatch.setattr(uploads, "reserve", slow_reserve)
    upload = Upload("/api/v1/datasets", form(MIB, slug="s", project="yard"), bearer)
    sending = asyncio.create_task(upload.send())
    assert await asyncio.to_thread(is_reserved.wait, 20)
    sending.cancel()
    may_answer.set()
    await asyncio.wait({sending})
    assert await reserved() == []


async def test_a_repeated_upload_is_answered_although_there_is_no_room_any_more(
    people: People, bearer: str
) -> None:
    body = form(MIB, slug="s", project="yard")
    first = Upload("/api/v1/datasets", body, bearer, idempotency_key="k")
    answer = await first.send()
    await set_quota(people.project, max_bytes=1000, max_uploads=1)
    again = Upload("/api/v1/datasets", body, bearer, idempotency_key="k")
    assert (await again.send(), again.status) == (answer, 201)
    other = Upload("/api/v1/datasets", body, bearer, idempotency_key="other")
    assert (await other.send())["code"] == "quota_reached"


async def test_the_quota_of_others_is_told_to_no_stranger(people: People, bearer: str) -> None:
    await sync_to_async(Project.objects.filter(slug="elsewhere").update)(max_bytes=1)
    upload = Upload("/api/v1/datasets", form(MIB, slug="s", project="elsewhere"), bearer)
    assert ((await upload.send())["code"], upload.status) == ("not_found", 404)
