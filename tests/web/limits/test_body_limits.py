"""Bodies that are too large are refused while they are read; Django stores nothing of them."""

import asyncio
import json
import tempfile
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from jobs.actions.people import tokens
from jobs.messages.code import MAX_BYTES
from jobs.models import User
from jobs.spec.data.images import MAX_IMAGE_BYTES
from tests.people import People, browser_of, make_people
from webapp.asgi import application
from webapp.limits.routes import ANONYMOUS_BYTES, READ_BYTES, limits_of

PART = 16 * 2**10
FORM_BYTES = 2_621_440
FILES = "/api/v1/datasets"


@pytest.fixture
def people(transactional_db: None) -> People:
    return make_people()


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes that Django stored, part by part."""
    sizes: list[int] = []

    class Recorder(tempfile.SpooledTemporaryFile[bytes]):
        def write(self, data: Any) -> int:
            sizes.append(len(data))
            return super().write(data)

    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", Recorder)
    return sizes


class Sender:
    """Sends one request with an endless body, or with `parts` parts, and keeps the response."""

    def __init__(self, path: str, parts: int | None = None, method: str = "POST", **headers: str) -> None:
        self.path, self.method, self.parts = path, method, parts
        self.headers = {"host": "localhost", **headers}
        self.read = 0
        self.status, self.body = 0, b""
        self.response_headers: dict[bytes, bytes] = {}

    async def send(self) -> "Sender":
        scope = {
            "type": "http",
            "method": self.method,
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": b"",
            "headers": [(name.replace("_", "-").encode(), v.encode()) for name, v in self.headers.items()],
        }
        async with asyncio.timeout(30):
            await application(scope, self._receive, self._send)
        return self

    async def _receive(self) -> dict[str, Any]:
        if self.parts is not None and self.read >= self.parts * PART:
            await asyncio.Event().wait()
        self.read += PART
        more = self.parts is None or self.read < self.parts * PART
        return {"type": "http.request", "body": bytes(PART), "more_body": more}

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status, self.response_headers = message["status"], dict(message["headers"])
        else:
            self.body += message.get("body", b"")

    @property
    def problem(self) -> dict[str, Any]:
        assert self.response_headers[b"content-type"] == b"application/problem+json"
        return json.loads(self.body)


@sync_to_async
def bearer(user: User, *scopes: str) -> str:
    return f"Bearer {tokens.create(user, by=None, scopes=scopes)[1]}"


@pytest.mark.parametrize(
    "path", ["/healthz", "/readyz", "/accounts/login/", "/static/css/app.css", "/unknown"]
)
async def test_an_endless_body_without_login_ends_at_64_kib(path: str, stored: list[int]) -> None:
    sender = await Sender(path).send()
    assert sender.status == sender.problem["status"] == 413
    assert sender.problem["limit"] == ANONYMOUS_BYTES
    assert sender.response_headers[b"connection"] == b"close"
    assert sender.read <= ANONYMOUS_BYTES + PART
    assert sum(stored) <= ANONYMOUS_BYTES


async def test_an_announced_length_is_refused_before_anything_is_read() -> None:
    sender = await Sender("/healthz", content_length=str(ANONYMOUS_BYTES + 1)).send()
    assert (sender.status, sender.read) == (413, 0)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_request_that_only_reads_has_no_large_body(method: str, stored: list[int]) -> None:
    sender = await Sender("/healthz", method=method).send()
    assert sender.status == 413
    assert sum(stored) <= READ_BYTES


async def test_the_api_answers_401_to_large_bodies_without_credentials(
    people: People, stored: list[int]
) -> None:
    callers: tuple[dict[str, Any], ...] = (
        {},
        {"authorization": "Bearer ty_unknown"},
        {"cookie": "session=unknown"},
    )
    for headers in callers:
        sender = await Sender(FILES, **headers).send()
        assert sender.status == 401
        assert sender.problem["limit"] == ANONYMOUS_BYTES
    assert sum(stored) <= 3 * ANONYMOUS_BYTES


async def test_the_limit_depends_on_route_and_caller(people: People, settings: Settings) -> None:
    settings.TRAINYARD_MAX_UPLOAD_BYTES = 2 * FORM_BYTES
    writer, viewer = await bearer(people.member, "write"), await bearer(people.viewer, "write")
    reader = await bearer(people.member, "read")
    expected = {
        (FILES, writer): 2 * FORM_BYTES,
        (FILES, viewer): FORM_BYTES,
        (FILES, reader): FORM_BYTES,
        ("/api/v1/models/m/versions", writer): 2 * FORM_BYTES,
        ("/api/v1/projects", writer): FORM_BYTES,
    }
    for (path, credentials), limit in expected.items():
        sender = await Sender(path, authorization=credentials).send()
        assert (sender.status, sender.problem["limit"]) == (413, limit), path
        assert sender.read <= limit + PART


async def test_a_session_sends_as_much_as_a_token(people: People, settings: Settings) -> None:
    browser = await sync_to_async(browser_of)(people.member)
    name = settings.SESSION_COOKIE_NAME
    sender = await Sender("/models/new", cookie=f"{name}={browser.cookies[name].value}").send()
    assert (sender.status, sender.problem["limit"]) == (413, FORM_BYTES)


async def test_a_body_within_the_limit_reaches_the_view(people: People) -> None:
    parts = 2 * ANONYMOUS_BYTES // PART
    kind = "application/json"
    for credentials, status in ((await bearer(people.member, "write"), 400), ("", 401)):
        sender = Sender("/api/v1/projects", parts, content_type=kind, authorization=credentials)
        assert (await sender.send()).status == status


async def test_a_browser_gets_a_page_that_names_the_limit() -> None:
    sender = await Sender("/accounts/login/", accept="text/html,*/*").send()
    assert sender.status == 413
    assert b"65,536 bytes" in sender.body


@pytest.mark.parametrize("answer", [b"", b"early"])
async def test_a_response_that_has_started_is_not_followed_by_another(
    answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from webapp.limits.bodies import LimitBodies

    async def reads_all(scope: Any, receive: Callable[..., Any], send: Callable[..., Any]) -> None:
        if answer:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        while (await receive())["type"] == "http.request":
            pass

    sender = Sender("/healthz")
    monkeypatch.setattr(f"{__name__}.application", LimitBodies(reads_all))
    assert (await sender.send()).status == (200 if answer else 413)


def test_the_prediction_form_takes_an_image_from_a_person_who_is_logged_in() -> None:
    limits = limits_of("POST", "/models/pets/versions/1/predict")
    assert limits.anyone == ANONYMOUS_BYTES
    assert limits.member == limits.writer == FORM_BYTES + MAX_IMAGE_BYTES
    assert limits_of("POST", "/models/pets/versions/1/promote").member == FORM_BYTES


@pytest.mark.parametrize("path", ["/api/v1/code", "/code/new"])
def test_code_is_larger_than_a_form_for_those_who_may_write_alone(path: str) -> None:
    limits = limits_of("POST", path)
    assert (limits.anyone, limits.member) == (ANONYMOUS_BYTES, FORM_BYTES)
    assert MAX_BYTES < limits.writer < MAX_BYTES + 2**20
