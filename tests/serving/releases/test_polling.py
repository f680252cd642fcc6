"""The poll for releases, over outages of the dashboard."""

import asyncio
from typing import Any, cast

import pytest

from workers.serving.health import Health
from workers.serving.releases import polling
from workers.serving.releases.catalog import Catalog
from workers.serving.releases.dashboard import CredentialRefused, Dashboard, DashboardUnavailable, Poll
from workers.serving.releases.polling import poll_releases


class _Dashboard:
    """Gives these answers to polls, then waits."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[int | None, bool]] = []

    async def poll(self, after: int | None, *, at_once: bool) -> Poll:
        self.asked.append((after, at_once))
        if not self.answers:
            await asyncio.Event().wait()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Poll(answer, [])


class _Catalog:
    def accept_all(self, bodies: Any) -> None:
        assert bodies == []


async def poll(dashboard: _Dashboard, health: Health) -> None:
    """Poll until all answers are used."""
    polls = asyncio.create_task(poll_releases(cast(Dashboard, dashboard), cast(Catalog, _Catalog()), health))
    async with asyncio.timeout(10):
        while dashboard.answers or len(dashboard.asked) < 1:
            await asyncio.sleep(0.001)
    for _ in range(5):
        await asyncio.sleep(0)
    polls.cancel()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "_MAX_PAUSE", 0.001)


async def test_the_first_poll_after_an_outage_does_not_wait_for_a_release() -> None:
    health = Health("refused", lambda: None)
    dashboard = _Dashboard(4, DashboardUnavailable("away"), DashboardUnavailable("away"), 4)
    await poll(dashboard, health)
    assert dashboard.asked == [(None, False), (4, False), (4, True), (4, True), (4, False)]
    health._heard -= 20
    assert health.cut_off is None


async def test_a_refusal_is_kept_as_the_reason() -> None:
    health = Health("refused", lambda: None)
    health._heard -= 20
    await poll(_Dashboard(CredentialRefused("401")), health)
    assert health.cut_off is not None
    assert (health.cut_off.reason, health.cut_off.is_refused) == ("401", True)
