"""A server that learns of no release shows it: in `ready`, in reports and in its log."""

import asyncio
import logging
from typing import Any

import httpx2
import pytest

from workers.model_process.errors import Unavailable
from workers.serving.health import Health
from workers.serving.options import UnreadyWhen
from workers.serving.releases.dashboard import (
    CredentialRefused,
    Dashboard,
    DashboardRefused,
    DashboardUnavailable,
)

AWAY, REFUSED = DashboardUnavailable("ConnectError: refused"), CredentialRefused("401: the token is unknown")


def silent_for(seconds: float, error: Exception | None, unready_when: UnreadyWhen = "refused") -> Health:
    health = Health(unready_when, lambda: None)
    health._heard -= seconds
    if error is not None:
        health.missed_releases(error)
    return health


@pytest.mark.parametrize(
    ("seconds", "error", "is_cut_off"),
    [(30, None, False), (50, None, True), (10, AWAY, False), (20, AWAY, True), (20, REFUSED, True)],
)
def test_a_short_silence_is_none(seconds: float, error: Exception | None, is_cut_off: bool) -> None:
    health = silent_for(seconds, error)
    assert (health.cut_off is not None) == is_cut_off
    health.heard_releases()
    assert health.cut_off is None


@pytest.mark.parametrize(
    ("unready_when", "error", "is_ready"),
    [
        ("refused", AWAY, True),
        ("refused", REFUSED, False),
        ("cut-off", AWAY, False),
        ("cut-off", REFUSED, False),
        ("never", AWAY, True),
        ("never", REFUSED, True),
    ],
)
def test_ready_tells_since_when_and_the_setting_decides(
    unready_when: UnreadyWhen, error: Exception, is_ready: bool
) -> None:
    health = silent_for(3600, error, unready_when)
    assert health.cut_off is not None
    if not is_ready:
        with pytest.raises(Unavailable, match=rf"cut off since {health.cut_off.since:%Y-%m-%d}.*{error}"):
            health.check()
        return
    notes = health.check()
    assert notes["cut_off_since"] == health.cut_off.since.isoformat(timespec="seconds")
    assert notes["reason"] == str(error)


def test_a_server_that_can_answer_nobody_is_not_ready() -> None:
    health = Health("never", lambda: "no token is known yet")
    with pytest.raises(Unavailable, match="no request can be answered: no token is known yet"):
        health.check()


def test_ready_tells_that_reports_are_not_accepted() -> None:
    health = Health("refused", lambda: None)
    health.reports_error = DashboardRefused("409: the credential is in use")
    assert health.check() == {"reports": "not accepted: 409: the credential is in use"}


async def test_the_log_says_each_minute_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    waits: list[float] = []

    class Enough(Exception):
        pass

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 4:
            raise Enough

    monkeypatch.setattr(asyncio, "sleep", sleep)
    health = silent_for(600, AWAY)
    health.reports_error = DashboardRefused("409")
    with caplog.at_level(logging.WARNING), pytest.raises(Enough):
        await health.log_problems()
    assert waits == [60.0] * 4
    lines = [record.message for record in caplog.records]
    assert [line.startswith("cut off since ") for line in lines] == [True, False] * 3
    assert lines[0].endswith("newer versions may be released: ConnectError: refused")


def dashboard_that_answers(status: int, body: Any, tmp_path: Any) -> Dashboard:
    token = tmp_path / "token"
    token.write_text("ty_own\n")
    dashboard = Dashboard("http://dashboard", token)
    answer = httpx2.MockTransport(lambda _: httpx2.Response(status, json=body))
    dashboard._http = httpx2.AsyncClient(base_url="http://dashboard", transport=answer)
    return dashboard


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, CredentialRefused),
        (403, CredentialRefused),
        (429, DashboardRefused),
        (500, DashboardUnavailable),
        (200, DashboardUnavailable),
    ],
)
async def test_a_refusal_is_told_from_no_answer(
    status: int, error: type[DashboardUnavailable], tmp_path: Any
) -> None:
    dashboard = dashboard_that_answers(status, {"detail": "why"}, tmp_path)
    for ask in (dashboard.poll(None), dashboard.known_access(["0" * 64], [])):
        with pytest.raises(error) as raised:
            await ask
        assert type(raised.value) is error
        assert ("serving-token NAME" in str(raised.value)) == (error is CredentialRefused)


async def test_known_access_is_read_by_digest(tmp_path: Any) -> None:
    entry = {"digest": "aa", "endpoints": ["m"], "expires": "2026-11-29T12:00:00Z", "warning": None}
    other = {"digest": "bb", "endpoints": None, "expires": None, "warning": None}
    dashboard = dashboard_that_answers(200, {"tokens": [entry, other]}, tmp_path)
    known = await dashboard.known_access(["aa", "bb", "cc"], ["aa"])
    assert (known["aa"].endpoints, known["aa"].expires) == (frozenset({"m"}), 1795953600.0)
    assert (known["bb"].endpoints, "cc" in known) == (None, False)
