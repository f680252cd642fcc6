"""The origin of a live connection is compared by scheme, host and port."""

from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from jobs.models import Job
from tests.factories import make_job
from tests.people import People, browser_of
from webapp.live.origin import OwnOrigin, is_own


@pytest.mark.parametrize(
    ("origin", "right"),
    [
        ("http://localhost:8000", True),
        ("http://LOCALHOST:8000", True),
        ("https://localhost:8000", False),
        ("http://localhost:8001", False),
        ("http://localhost", False),
        ("http://127.0.0.1:8000", False),
        ("http://localhost.example:8000", False),
        ("http://localhost:port", False),
        ("null", False),
        ("", False),
    ],
)
def test_scheme_host_and_port_must_be_those_of_the_request(origin: str, right: bool) -> None:
    assert is_own(origin, secure=False, host="localhost:8000") is right


def test_a_host_that_is_not_allowed_vouches_for_no_origin() -> None:
    assert not is_own("http://evil.example", secure=False, host="evil.example")


def test_the_public_address_is_right_behind_a_proxy_that_ends_tls(settings: Settings) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://yard.example"]
    assert is_own("https://yard.example", secure=False, host="127.0.0.1:8000")
    assert is_own("https://yard.example:443", secure=False, host="127.0.0.1:8000")
    assert not is_own("http://yard.example", secure=False, host="127.0.0.1:8000")


@pytest.mark.parametrize(
    ("scheme", "origin", "passes"),
    [
        ("wss", b"https://localhost", True),
        ("wss", b"http://localhost", False),
        ("ws", b"https://localhost", False),
    ],
)
async def test_a_socket_is_refused_before_it_reaches_the_consumer(
    scheme: str, origin: bytes, passes: bool
) -> None:
    reached, sent = [], []

    async def consumer(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope)

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message["type"])

    headers = [(b"host", b"localhost"), (b"origin", origin), (b"x-forwarded-proto", b"https")]
    scope = {"type": "websocket", "scheme": scheme, "path": "/ws/v1", "headers": headers}
    await OwnOrigin(consumer)(scope, receive, send)
    assert (bool(reached), sent) == ((True, []) if passes else (False, ["websocket.close"]))


@pytest.fixture
def job(people: People) -> Job:
    return make_job(by=people.member, project=people.project)


@pytest.mark.parametrize(("origin", "status"), [("http://testserver", 200), ("http://testserver:81", 403)])
def test_a_stream_of_a_session_is_not_opened_for_a_foreign_page(
    people: People, job: Job, origin: str, status: int
) -> None:
    browser: Client = browser_of(people.member)
    headers = {"Accept": "text/event-stream", "Origin": origin}
    answer = browser.get(f"/api/v1/jobs/{job.pk}/events", headers=headers)
    answer.close()
    assert answer.status_code == status
