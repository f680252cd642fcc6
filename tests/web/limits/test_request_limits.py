"""Requests answered at the same time are bounded, with room for people and /healthz."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from jobs.actions.people import tokens
from tests.people import make_people
from webapp.limits import requests
from webapp.limits.requests import LimitRequests


class Site:
    """An application whose responses wait until `release` is set."""

    def __init__(self, kind: bytes = b"text/html") -> None:
        self.release, self.begun = asyncio.Event(), 0
        self.application = LimitRequests(self._answer)
        self._kind = kind

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"Content-Type", self._kind)]})
        self.begun += 1
        await self.release.wait()

    async def get(self, path: str = "/", address: str = "192.0.2.1", **headers: str) -> dict[str, Any]:
        """Return the response's start."""
        sent: list[dict[str, Any]] = []

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        listed = [(name.encode(), value.encode()) for name, value in headers.items()]
        scope = {"type": "http", "method": "GET", "path": path, "headers": listed, "client": (address, 1)}
        await self.application(scope, None, send)  # type: ignore[arg-type]
        body = sent[1].get("body", b"{}") if len(sent) > 1 else b"{}"
        return {**sent[0], "body": json.loads(body)}

    @asynccontextmanager
    async def busy(self, count: int) -> AsyncIterator[None]:
        """Have `count` requests, from different addresses, being answered."""
        tasks = [asyncio.create_task(self.get(address=f"192.0.2.{n + 2}")) for n in range(count)]
        async with asyncio.timeout(10):
            while self.begun < count:
                await asyncio.sleep(0)
        yield
        self.release.set()
        await asyncio.gather(*tasks)
        assert not self.application._by_address


async def test_the_last_places_are_for_valid_credentials(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "MOST_WITHOUT_LOGIN", 2)
    people = await sync_to_async(make_people)()
    _, raw = await sync_to_async(tokens.create)(people.viewer, by=None, scopes=["read"])
    site = Site()
    async with site.busy(2):
        refused = await site.get()
        assert (refused["status"], refused["body"]["code"]) == (503, "unavailable")
        assert (await site.get(authorization="Bearer ty_unknown"))["status"] == 503
        person = asyncio.create_task(site.get(authorization=f"Bearer {raw}"))
        healthy = asyncio.create_task(site.get("/healthz"))
        async with asyncio.timeout(10):
            while site.begun < 4:
                await asyncio.sleep(0.001)
    assert (await person)["status"] == (await healthy)["status"] == 200


async def test_a_network_of_ipv6_has_the_share_of_one_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MOST_PER_ADDRESS", 1)
    site = Site()
    first = asyncio.create_task(site.get(address="2001:db8::1"))
    async with asyncio.timeout(10):
        while not site.begun:
            await asyncio.sleep(0)
        refused = await site.get(address="2001:db8::2")
    site.release.set()
    assert (refused["status"], (await first)["status"]) == (429, 200)
    assert (await site.get(address="2001:db8:0:1::1"))["status"] == 200


async def test_an_address_has_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MOST_PER_ADDRESS", 1)
    site = Site()
    async with site.busy(2):
        refused = await site.get(address="192.0.2.2")
    assert refused["status"] == 429
    assert (b"retry-after", b"1") in refused["headers"]


async def test_an_open_event_stream_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MOST", 1)
    site = Site(b"text/event-stream")
    async with site.busy(3):
        assert not site.application._by_address
