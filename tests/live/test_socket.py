"""The WebSocket: subscriptions, reconnects, permissions and malformed messages."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
import redis
from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async
from django.contrib.auth.models import AnonymousUser

from jobs import hints
from jobs.actions.people import people
from jobs.actions.runs import events
from jobs.actions.storage import deletions
from jobs.models import Job, Role, Session, User
from tests.jobs.yard import Yard
from tests.people import browser_of
from webapp.live import consumer, readers
from webapp.live.consumer import LiveConsumer


class Page(ApplicationCommunicator):
    """A browser page of a user, as an ASGI WebSocket connection."""

    def __init__(self, user: User | AnonymousUser) -> None:
        scope: dict[str, Any] = {"type": "websocket", "path": "/ws/v1", "headers": [], "user": user}
        super().__init__(LiveConsumer.as_asgi(), scope)
        self.user = user

    async def connect(self) -> None:
        if isinstance(self.user, User):
            self.browser = await database_sync_to_async(browser_of)(self.user)
            self.scope["session"] = await database_sync_to_async(lambda: self.browser.session)()
        await self.send_input({"type": "websocket.connect"})
        assert (await self.receive_output(timeout=30))["type"] == "websocket.accept"

    async def disconnect(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1001})
        await self.wait(timeout=30)

    async def send(self, text: str) -> None:
        await self.send_input({"type": "websocket.receive", "text": text})

    async def frame(self) -> dict[str, Any]:
        return json.loads((await self.receive_output(timeout=30))["text"])

    async def subscribe(self, job: int, after: int | None = None) -> None:
        await self.send(json.dumps({"op": "subscribe", "job": job, "after": after}))

    async def events(self, count: int) -> list[dict[str, Any]]:
        received: list[dict[str, Any]] = []
        while len(received) < count:
            frame = await self.frame()
            assert frame["type"] == "events"
            received += frame["items"]
        return received


async def send(job: Job, count: int) -> None:
    def append_lines() -> None:
        for n in range(count):
            events.append(job.pk, [events.event("log", job, level="info", source="runner", line=f"line {n}")])

    await database_sync_to_async(append_lines)()


@pytest.fixture
async def job(installation: Yard) -> Job:
    return await database_sync_to_async(installation.submit)()


async def test_a_page_opened_late_gets_all_events(installation: Yard, job: Job) -> None:
    await send(job, 5)
    page = Page(installation.owner)
    await page.connect()
    await page.subscribe(job.pk)
    assert [e["cursor"] for e in await page.events(6)] == [1, 2, 3, 4, 5, 6]
    await page.disconnect()


async def test_across_reconnects_each_event_arrives_once_and_in_order(installation: Yard, job: Job) -> None:
    sending = asyncio.create_task(send(job, 60))
    seen: list[int] = []
    while len(seen) < 61:
        page = Page(installation.owner)
        await page.connect()
        await page.subscribe(job.pk, after=seen[-1] if seen else None)
        seen += [e["cursor"] for e in await page.events(1)]
        await page.disconnect()
    await sending
    assert seen == list(range(1, 62))


async def test_a_stranger_gets_no_events_of_a_job(installation: Yard, job: Job) -> None:
    stranger = await database_sync_to_async(User.objects.create)(username="stranger")
    page = Page(stranger)
    await page.connect()
    await page.subscribe(job.pk)
    assert await page.frame() == {"type": "error", "code": "not_found", "job": job.pk}
    await page.disconnect()


async def join(installation: Yard, name: str) -> User:
    user = await User.objects.acreate(username=name)
    await database_sync_to_async(people.set_role)(
        installation.project, user, Role.VIEWER, by=installation.owner
    )
    return user


async def wait_for_subscription(broker: "redis.Redis") -> None:
    """Wait until this process has subscribed. A hint before that is lost, until the check each minute."""
    channel = hints.channel_name("access")
    async with asyncio.timeout(60):
        while not broker.pubsub_numsub(channel)[0][1]:
            await asyncio.sleep(0.01)


async def test_a_removed_member_gets_no_more_events_at_once(
    installation: Yard, job: Job, broker: "redis.Redis"
) -> None:
    viewer, gone = await join(installation, "vera"), await join(installation, "gus")
    pages = Page(viewer), Page(gone)
    for page in pages:
        await page.connect()
        await page.subscribe(job.pk)
        await page.events(1)
    await wait_for_subscription(broker)
    await database_sync_to_async(people.remove_member)(installation.project, gone, by=installation.owner)
    assert await pages[1].frame() == {"type": "error", "code": "not_found", "job": job.pk}
    await send(job, 1)
    assert [e["line"] for e in await pages[0].events(1)] == ["line 0"]
    for page in pages:
        await page.disconnect()


async def test_the_readers_of_a_deleted_job_get_no_more_events(
    installation: Yard, job: Job, broker: "redis.Redis"
) -> None:
    page = Page(installation.owner)
    await page.connect()
    await page.subscribe(job.pk)
    await page.events(1)
    await wait_for_subscription(broker)
    await database_sync_to_async(Job.objects.filter(pk=job.pk).update)(state="completed")
    await database_sync_to_async(deletions.delete)(job, by=installation.owner)
    assert await page.frame() == {"type": "error", "code": "not_found", "job": job.pk}
    await page.disconnect()


async def test_the_connection_of_an_anonymous_user_is_closed_with_a_code(installation: Yard) -> None:
    page = Page(AnonymousUser())
    await page.connect()
    assert (await page.receive_output(timeout=30))["code"] == 4401


def log_out(page: Page) -> None:
    page.browser.post("/accounts/logout/")


def end_all_sessions(page: Page) -> None:
    page.browser.post("/account/end-sessions")


def deactivate(page: Page) -> None:
    admin = User.objects.create(username="head", is_superuser=True)
    assert isinstance(page.user, User)
    people.set_active(page.user, False, by=admin)


def change_the_password_elsewhere(page: Page) -> None:
    assert isinstance(page.user, User)
    page.user.set_unusable_password()
    page.user.save(update_fields=["password"])
    other = browser_of(page.user)
    other.post("/accounts/password/set/", {"password1": "a-long-new-one", "password2": "a-long-new-one"})


@pytest.mark.parametrize("end", [log_out, end_all_sessions, deactivate, change_the_password_elsewhere])
async def test_a_connection_is_closed_at_once_when_its_session_ends(
    installation: Yard, broker: "redis.Redis", end: Callable[[Page], None]
) -> None:
    page, other = Page(installation.owner), Page(await join(installation, "vera"))
    for socket_page in (page, other):
        await socket_page.connect()
    await wait_for_subscription(broker)
    await database_sync_to_async(end)(page)
    assert (await page.receive_output(timeout=60))["code"] == 4401
    assert await other.receive_nothing()
    await other.disconnect()


async def test_a_lost_hint_delays_the_close_until_the_next_check(
    installation: Yard, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer, "ACCESS_CHECK_INTERVAL", 0.05)
    page = Page(installation.owner)
    await page.connect()
    await page.subscribe(job.pk)
    await page.events(1)
    await Session.objects.all().adelete()
    assert (await page.receive_output(timeout=60))["code"] == 4401


async def test_a_changed_password_closes_connections_whose_session_is_still_stored(
    installation: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer, "ACCESS_CHECK_INTERVAL", 0.05)
    page = Page(installation.owner)
    await page.connect()
    await User.objects.filter(pk=installation.owner.pk).aupdate(password="another")
    assert (await page.receive_output(timeout=60))["code"] == 4401


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"op": "subscribe"}', '{"op": "subscribe", "job": "1"}', "x" * 5000, "[" * 4096]
)
async def test_a_malformed_message_is_answered_with_an_error(installation: Yard, text: str) -> None:
    page = Page(installation.owner)
    await page.connect()
    await page.send(text)
    assert (await page.frame())["code"] == "malformed"
    await page.disconnect()


@pytest.mark.parametrize(
    ("limit", "reason"), [("MAX_PER_PERSON", "of your pages"), ("MAX_IN_ALL", "This installation")]
)
async def test_a_socket_above_a_limit_is_closed_with_the_reason(
    installation: Yard, monkeypatch: pytest.MonkeyPatch, limit: str, reason: str
) -> None:
    monkeypatch.setattr(readers, limit, 1)
    first, second = Page(installation.owner), Page(installation.owner)
    await first.connect()
    await second.connect()
    closed = await second.receive_output(timeout=30)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4429)
    assert reason in closed["reason"]
    assert len(closed["reason"].encode()) <= 123
    await second.disconnect()
    await first.disconnect()
    assert not readers._open
