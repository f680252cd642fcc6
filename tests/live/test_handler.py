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

from jobs.actions import events, tokens
from jobs.models import ReleaseRecord
from jobs.queries import releases
from tests.jobs.yard import Yard
from webapp.asgi import application
from webapp.live import hub

IMMEDIATELY = 5.0
"""Seconds: far below what a long poll or a heartbeat would take, far above what a busy machine does."""


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

    async def leave(self) -> None:
        await self.send_input({"type": "http.disconnect"})
        await self.end()

    async def end(self) -> None:
        async with asyncio.timeout(IMMEDIATELY):  # `wait` takes the end of its time for one of the request
            await self.future

    async def body(self) -> bytes:
        message = await self.receive_output(timeout=30)
        if message["type"] == "http.response.start":
            assert message["status"] == 200
            return await self.body()
        return message["body"]


@pytest.fixture
async def bearer(yard: Yard) -> str:
    make = database_sync_to_async(tokens.create)
    _, raw = await make(yard.owner, by=None, scopes=["read", "serve"])
    return f"Bearer {raw}"


@pytest.fixture
async def nothing_left() -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Wait until no task and no thread is there that was not before."""
    tasks, threads = asyncio.all_tasks(), set(threading.enumerate())

    def more() -> list[object]:
        new_tasks = asyncio.all_tasks() - tasks - {asyncio.current_task()}
        return [*new_tasks, *(set(threading.enumerate()) - threads)]

    async def left() -> None:
        ends = time.monotonic() + IMMEDIATELY
        while more() and time.monotonic() < ends:
            await asyncio.sleep(0.01)
        assert not more()

    yield left


@pytest.mark.parametrize("when", ["it looks", "it waits"])
async def test_a_client_that_leaves_a_long_poll_frees_it_at_once_without_a_log_line(
    when: str,
    bearer: str,
    nothing_left: Callable[[], Awaitable[None]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop, looked, found = asyncio.get_running_loop(), asyncio.Event(), releases.newest_releases

    def newest(after: int | None) -> tuple[int, list[ReleaseRecord]]:
        if when == "it looks":
            loop.call_soon_threadsafe(looked.set)
        answer = found(after)
        loop.call_soon_threadsafe(looked.set)
        return answer

    monkeypatch.setattr(releases, "newest_releases", newest)
    poll = Visit("/api/v1/serving/releases", "after=0&wait=60", authorization=bearer)
    await poll.begin()
    async with asyncio.timeout(30):
        await looked.wait()
    await poll.leave()
    await nothing_left()
    assert poll.output_queue.empty()
    assert not caplog.records


async def test_an_event_stream_ends_when_its_reader_disconnects(
    yard: Yard,
    bearer: str,
    nothing_left: Callable[[], Awaitable[None]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    job = await database_sync_to_async(yard.submit)()
    stream = Visit(f"/api/v1/jobs/{job.pk}/events", authorization=bearer, accept="text/event-stream")
    await stream.begin()
    assert await stream.body() == b": hello\n\n"
    assert (await stream.body()).startswith(b"id: 1\nevent: state\n")
    await stream.leave()
    await nothing_left()
    assert not caplog.records


async def test_the_thread_of_a_disconnected_reader_ends_though_others_continue(
    yard: Yard, bearer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "POLL_SECONDS", 0.05)
    job = await database_sync_to_async(yard.submit)()
    threads = set(threading.enumerate())
    streams = []
    for _ in range(2):
        stream = Visit(f"/api/v1/jobs/{job.pk}/events", authorization=bearer, accept="text/event-stream")
        await stream.begin()
        assert await stream.body() == b": hello\n\n"
        assert (await stream.body()).startswith(b"id: 1\n")
        streams.append(stream)
    first, second = streams
    await first.leave()
    await database_sync_to_async(events.append)(job.pk, [events.event("state", job, state="running")])
    assert (await second.body()).startswith(b"id: 2\n"), "events were read since"
    assert len(set(threading.enumerate()) - threads) == 1, "that of the other request"
    await second.leave()


both = threading.Barrier(2)


def binds(request: HttpRequest) -> JsonResponse:
    """Say what the log knows of this request at first, and once those beside it have bound something."""
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
    said = [json.loads(await visit.body()) for visit in visits]
    assert said == [{"before": {}, "after": {"name": name}} for name in "ab"]


@pytest.mark.urls(__name__)
async def test_log_context_of_a_request_does_not_reach_the_next_one_on_its_connection() -> None:
    for name in "ab":
        visit = Visit("/binds", f"name={name}")
        await visit.input_queue.put({"type": "http.request"})
        await application(visit.scope, visit.input_queue.get, visit.output_queue.put)  # in this very task
        assert json.loads(await visit.body()) == {"before": {}, "after": {"name": name}}


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
    assert len(changes) == 3, "one to begin it, one for all middleware and the view, one to close the answer"
