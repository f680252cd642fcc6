"""The ASGI handler: disconnected clients free their resources, and requests do not share log context."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import structlog
from asgiref.sync import SyncToAsync
from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async
from django.http import HttpRequest, JsonResponse
from django.urls import path
from pytest_django import Settings

from jobs.actions.people import service_tokens, tokens
from jobs.actions.runs import events
from jobs.models import ReleaseRecord
from jobs.queries.registry import releases
from tests.jobs.yard import Yard
from tests.people import browser_of
from webapp.asgi import application
from webapp.live import hub, readers

IMMEDIATELY = 5.0
"""Seconds: far less than a long poll or a heartbeat takes, far more than a busy machine needs."""


class Visit(ApplicationCommunicator):
    """One GET request."""

    def __init__(self, address: str, query: str = "", **headers: str) -> None:
        super().__init__(
            application,
            {
                "type": "http",
                "method": "GET",
                "path": address,
                "query_string": query.encode(),
                "headers": [(b"host", b"localhost"), *((k.encode(), v.encode()) for k, v in headers.items())],
            },
        )

    async def begin(self) -> None:
        await self.send_input({"type": "http.request"})

    async def disconnect(self) -> None:
        await self.send_input({"type": "http.disconnect"})
        await self.end()

    async def end(self) -> None:
        # `wait` would treat its own timeout as the end of the request.
        async with asyncio.timeout(IMMEDIATELY):
            await self.future

    async def body(self) -> bytes:
        message = await self.receive_output(timeout=30)
        if message["type"] == "http.response.start":
            assert message["status"] == 200
            return await self.body()
        return message["body"]


async def test_a_response_does_not_wait_for_a_slow_client_to_read_its_first_part() -> None:
    visit = Visit("/api/v1/openapi.json")
    await visit.begin()
    assert len(await visit.body()) > 2**18
    await visit.end()


@pytest.fixture
async def bearer(installation: Yard) -> str:
    make = database_sync_to_async(tokens.create)
    _, raw = await make(installation.owner, by=None, scopes=["read"])
    return f"Bearer {raw}"


@pytest.fixture
async def server_bearer(installation: Yard) -> str:
    assert installation
    return f"Bearer {await database_sync_to_async(service_tokens.create_credential)('b', by=None)}"


@pytest.fixture
async def all_ended() -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Wait until all tasks and threads that were started during the test have ended."""
    tasks, threads = asyncio.all_tasks(), set(threading.enumerate())

    def remaining() -> list[object]:
        new_tasks = asyncio.all_tasks() - tasks - {asyncio.current_task()}
        return [*new_tasks, *(set(threading.enumerate()) - threads)]

    async def ended() -> None:
        ends = time.monotonic() + IMMEDIATELY
        while remaining() and time.monotonic() < ends:
            await asyncio.sleep(0.01)
        assert not remaining()

    yield ended


@pytest.mark.parametrize("when", ["during the query", "between queries"])
async def test_a_long_poll_ends_at_once_without_a_log_line_when_its_client_disconnects(
    when: str,
    server_bearer: str,
    all_ended: Callable[[], Awaitable[None]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop, queried, original = asyncio.get_running_loop(), asyncio.Event(), releases.newest_releases

    def newest(after: int | None) -> tuple[int, list[ReleaseRecord]]:
        if when == "during the query":
            loop.call_soon_threadsafe(queried.set)
        answer = original(after)
        loop.call_soon_threadsafe(queried.set)
        return answer

    monkeypatch.setattr(releases, "newest_releases", newest)
    poll = Visit("/api/v1/serving/releases", "after=0&wait=60", authorization=server_bearer)
    await poll.begin()
    async with asyncio.timeout(30):
        await queried.wait()
    await poll.disconnect()
    await all_ended()
    assert poll.output_queue.empty()
    assert not caplog.records


async def test_files_are_sent_without_a_warning(
    installation: Yard, settings: Settings, recwarn: pytest.WarningsRecorder
) -> None:
    job = await database_sync_to_async(installation.submit)()
    browser = await database_sync_to_async(browser_of)(installation.owner)
    name = settings.SESSION_COOKIE_NAME
    for address in ("/audit/export.csv", f"/api/v1/jobs/{job.pk}/metrics.csv", "/static/css/app.css"):
        download = Visit(address, cookie=f"{name}={browser.cookies[name].value}")
        await download.begin()
        assert b"," in await download.body()
        await download.end()
    assert not [warning for warning in recwarn if "iterator" in str(warning.message)]


async def test_an_event_stream_ends_when_its_reader_disconnects(
    installation: Yard,
    bearer: str,
    all_ended: Callable[[], Awaitable[None]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    job = await database_sync_to_async(installation.submit)()
    stream = Visit(f"/api/v1/jobs/{job.pk}/events", authorization=bearer, accept="text/event-stream")
    await stream.begin()
    assert await stream.body() == b": hello\n\n"
    assert (await stream.body()).startswith(b"id: 1\nevent: state\n")
    await stream.disconnect()
    await all_ended()
    assert not caplog.records


async def test_open_event_streams_have_no_threads(
    installation: Yard, bearer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "POLL_SECONDS", 0.05)
    job = await database_sync_to_async(installation.submit)()
    threads = set(threading.enumerate())
    streams = []
    for _ in range(5):
        stream = Visit(f"/api/v1/jobs/{job.pk}/events", authorization=bearer, accept="text/event-stream")
        await stream.begin()
        assert await stream.body() == b": hello\n\n"
        assert (await stream.body()).startswith(b"id: 1\n")
        streams.append(stream)
    first, second, *others = streams
    await first.disconnect()
    await database_sync_to_async(events.append)(job.pk, [events.event("state", job, state="running")])
    assert (await second.body()).startswith(b"id: 2\n"), "events were read after the other reader had left"
    assert not set(threading.enumerate()) - threads
    for stream in (second, *others):
        await stream.disconnect()


async def test_event_streams_are_bounded_per_person_and_in_all(
    installation: Yard, bearer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await database_sync_to_async(installation.submit)()
    path, accept = f"/api/v1/jobs/{job.pk}/events", "text/event-stream"
    for limit, reason in (("MAX_PER_PERSON", b"of your event streams"), ("MAX_IN_ALL", b"This installation")):
        with monkeypatch.context() as patch:
            patch.setattr(readers, limit, 1)
            stream = Visit(path, authorization=bearer, accept=accept)
            await stream.begin()
            assert await stream.body() == b": hello\n\n"
            await stream.body()
            refused = Visit(path, authorization=bearer, accept=accept)
            await refused.begin()
            message = await refused.receive_output(timeout=30)
            assert message["status"] == 429
            assert (b"Retry-After", b"30") in message["headers"]
            assert reason in (await refused.receive_output(timeout=30))["body"]
            await refused.end()
            await stream.disconnect()
    again = Visit(path, authorization=bearer, accept=accept)
    await again.begin()
    assert await again.body() == b": hello\n\n"
    await again.disconnect()
    assert not readers._open


both = threading.Barrier(2)


def binds(request: HttpRequest) -> JsonResponse:
    """Return the log context at the start, and again after concurrent requests have bound values."""
    before = structlog.contextvars.get_contextvars()
    structlog.contextvars.bind_contextvars(name=request.GET["name"])
    if "together" in request.GET:
        both.wait(30)
    return JsonResponse({"before": before, "after": structlog.contextvars.get_contextvars()})


urlpatterns = [path("binds", binds)]


@pytest.mark.urls(__name__)
async def test_log_context_of_a_request_does_not_reach_a_concurrent_one() -> None:
    visits = [Visit("/binds", f"name={name}&together") for name in "ab"]
    for visit in visits:
        await visit.begin()
    contexts = [json.loads(await visit.body()) for visit in visits]
    ids = [context["before"].pop("request") for context in contexts]
    assert ids == [context["after"].pop("request") for context in contexts]
    assert len(set(ids)) == 2
    assert contexts == [{"before": {}, "after": {"name": name}} for name in "ab"]


@pytest.mark.urls(__name__)
async def test_log_context_of_a_request_does_not_reach_the_next_one_on_its_connection() -> None:
    for name in "ab":
        visit = Visit("/binds", f"name={name}")
        await visit.input_queue.put({"type": "http.request"})
        await application(visit.scope, visit.input_queue.get, visit.output_queue.put)  # in the same task
        context = json.loads(await visit.body())
        assert context["before"].pop("request") == context["after"].pop("request")
        assert context == {"before": {}, "after": {"name": name}}


async def test_a_request_switches_to_its_thread_once(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = []

    async def change(to: SyncToAsync[..., Any], *args: Any, **named: Any) -> Any:
        changes.append(to)
        return await into(to, *args, **named)

    into = SyncToAsync.__call__
    monkeypatch.setattr(SyncToAsync, "__call__", change)
    visit = Visit("/healthz")
    await visit.begin()
    assert await visit.body() == b'{"status": "ok"}'
    await visit.end()
    assert len(changes) == 3, (
        "one for the start, one for all middleware and the view, one to close the response"
    )
