"""One job's stream among its root job's events."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import TypeAdapter

from jobs.answers.runs.events import EventOut
from jobs.models import Job
from jobs.queries.runs.events import Slice
from tests.web.styles.themes import STATIC
from webapp.live import event_stream


class BusyRoot:
    """A hub whose root job always has a new event, of another child."""

    @contextlib.asynccontextmanager
    async def watch(self, root_id: int) -> AsyncIterator[None]:
        yield None

    def access_changes(self, user_id: int) -> int:
        return 0

    async def read(self, watched: Any, root_id: int, cursor: int) -> Slice:
        await asyncio.sleep(0.005)
        return Slice([{"type": "log", "job": 3, "cursor": cursor + 1}], cursor + 1)


async def test_a_quiet_child_of_a_busy_root_still_has_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    async def may_see(reader: event_stream.Reader, job_id: int) -> None:
        pass

    monkeypatch.setattr(event_stream, "HEARTBEAT_INTERVAL", 0.05)
    monkeypatch.setattr(event_stream, "hub", BusyRoot)
    monkeypatch.setattr(event_stream, "may_see", may_see)
    stream: Any = event_stream.stream_events(
        event_stream.Reader(1), Job(pk=2, root_id=1, parent_id=1), after=0
    )
    async with asyncio.timeout(20):
        first, second = await anext(stream), await anext(stream)
    await stream.aclose()
    assert first.items == second.items == []
    assert second.cursor > first.cursor > 0


def test_pages_that_follow_a_stream_name_every_type_of_event() -> None:
    script = (STATIC / "js" / "shared" / "connection" / "streams.js").read_text()
    named = set(re.findall(r"^  (\w+): true,$", script, re.M))
    assert named == set(TypeAdapter(EventOut).json_schema()["discriminator"]["mapping"])
