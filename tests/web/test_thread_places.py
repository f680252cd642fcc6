"""Requests without valid credentials wait for a thread, and take none from people and from /healthz."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings

from jobs.actions.people import tokens
from tests.people import make_people
from webapp.handler import OneThreadHandler
from webapp.limits import threads
from webapp.limits.threads import AT_ONCE, UNCHECKED, Headers, ThreadPlaces

SESSION: Headers = [(b"cookie", f"a=b; {settings.SESSION_COOKIE_NAME}=unknown".encode())]
TOKEN: Headers = [(b"authorization", b"Bearer ty_unknown")]


class Requests:
    """Requests that keep their threads until `release` is set."""

    def __init__(self) -> None:
        self.places, self.release, self.begun = ThreadPlaces(), asyncio.Event(), 0
        self.tasks: list[asyncio.Task[None]] = []
        self.path = "/"

    async def _run(self, headers: Headers) -> None:
        async with self.places.turn({"path": self.path, "headers": headers}):
            self.begun += 1
            await self.release.wait()

    def start(self, headers: Headers, count: int = 1) -> None:
        self.tasks += [asyncio.create_task(self._run(headers)) for _ in range(count)]

    async def until_begun(self, count: int) -> None:
        async with asyncio.timeout(10):
            while self.begun < count:
                await asyncio.sleep(0.001)


@pytest.fixture
async def requests() -> AsyncIterator[Requests]:
    blocked_requests = Requests()
    yield blocked_requests
    blocked_requests.release.set()
    async with asyncio.timeout(10):
        await asyncio.gather(*blocked_requests.tasks)


async def test_few_requests_without_credentials_have_a_thread(requests: Requests) -> None:
    requests.start([], AT_ONCE + 5)
    await requests.until_begun(AT_ONCE)
    await asyncio.sleep(0)
    assert requests.begun == AT_ONCE
    requests.release.set()
    await requests.until_begun(AT_ONCE + 5)


@pytest.mark.parametrize("claimed", [SESSION, TOKEN], ids=["session", "token"])
async def test_credentials_are_checked_when_many_claim_to_have_them(
    transactional_db: None, requests: Requests, claimed: Headers
) -> None:
    requests.start(claimed, UNCHECKED)
    requests.start([], AT_ONCE)
    await requests.until_begun(UNCHECKED + AT_ONCE)
    people = await sync_to_async(make_people)()
    _, raw = await sync_to_async(tokens.create)(people.viewer, by=None, scopes=["read"])
    requests.start(claimed)
    requests.start([(b"authorization", f"Bearer {raw}".encode())])
    await requests.until_begun(UNCHECKED + AT_ONCE + 1)
    assert requests.begun == UNCHECKED + AT_ONCE + 1
    assert len(requests.places._valid) == 1


async def test_valid_credentials_are_not_checked_again_for_a_while(
    monkeypatch: pytest.MonkeyPatch, requests: Requests
) -> None:
    checked: list[Headers] = []

    async def find(headers: Headers) -> object:
        checked.append(headers)
        return object()

    monkeypatch.setattr(threads, "find_caller", find)
    requests.start(SESSION, UNCHECKED)
    requests.start(TOKEN)
    await requests.until_begun(UNCHECKED + 1)
    requests.start([*TOKEN, (b"accept", b"*/*")])
    await requests.until_begun(UNCHECKED + 2)
    assert checked == [TOKEN]


async def test_a_client_that_disconnects_while_it_waits_takes_no_turn(requests: Requests) -> None:
    requests.start([], AT_ONCE)
    await requests.until_begun(AT_ONCE)
    requests.start([], 2)
    await asyncio.sleep(0)
    gone = requests.tasks.pop(-2)
    gone.cancel()
    requests.release.set()
    await requests.until_begun(AT_ONCE + 1)
    assert await asyncio.gather(gone, return_exceptions=True)
    assert requests.places._places._value <= AT_ONCE


async def test_healthz_waits_for_no_turn(requests: Requests) -> None:
    requests.start([], AT_ONCE + 1)
    await requests.until_begun(AT_ONCE)
    requests.path = "/healthz"
    requests.start([])
    await requests.until_begun(AT_ONCE + 1)


async def test_a_request_has_its_turn_while_it_has_a_thread() -> None:
    turns: list[str] = []

    @asynccontextmanager
    async def turn(scope: Any) -> AsyncIterator[None]:
        turns.append(scope["path"])
        yield
        turns.append("end")

    coming = [{"type": "http.request"}]

    async def receive() -> dict[str, str]:
        return coming.pop() if coming else await asyncio.Future()

    async def send(message: Any) -> None:
        turns.append(message["type"])

    headers = [(b"host", b"localhost")]
    scope = {"type": "http", "method": "GET", "path": "/healthz", "query_string": b"", "headers": headers}
    async with asyncio.timeout(10):
        await OneThreadHandler(turn)(scope, receive, send)
    assert turns == ["/healthz", "end", "http.response.start", "http.response.body"]
