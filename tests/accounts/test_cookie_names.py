"""Cookies are named after the installation: its servers share them, others on the host do not."""

from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connections

from jobs.actions import own_installation
from webapp.accounts import cookie_names
from webapp.accounts.named_cookies import NamedCookies

SETTINGS = ("SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME", "TRAINYARD_COOKIE_SUFFIX")


@pytest.fixture
def new_process(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the settings of a process that has just started with a new home."""
    settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME = "session", "csrf"
    settings.TRAINYARD_COOKIE_SUFFIX = ""
    settings.TRAINYARD_HOME = tmp_path
    # The test's transaction is in the connection.
    monkeypatch.setattr(connections, "close_all", lambda: None)
    return settings


@pytest.fixture
def _away(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OperationalError("the database does not answer")

    monkeypatch.setattr(own_installation, "ensured_row", fail)


def names(settings: Any) -> list[str]:
    return [getattr(settings, name) for name in SETTINGS]


def test_the_names_have_the_identity_in_the_database(new_process: Any, db: None) -> None:
    identity = own_installation.ensured_row().identity
    assert cookie_names.complete()
    suffix = f"-{identity[:8]}"
    assert names(new_process) == [f"session{suffix}", f"csrf{suffix}", suffix]
    assert cookie_names.named("theme") == f"theme{suffix}"


def test_they_are_made_once(new_process: Any, db: None) -> None:
    cookie_names.complete()
    before = names(new_process)
    cookie_names.complete()
    assert names(new_process) == before


@pytest.mark.usefixtures("_away")
def test_a_home_that_was_used_before_knows_them_without_the_database(
    new_process: Any, tmp_path: Path
) -> None:
    (tmp_path / own_installation.IDENTITY_FILE).write_text("0123456789abcdef")
    assert cookie_names.complete()
    assert new_process.SESSION_COOKIE_NAME == "session-01234567"


async def connect(path: str, kind: str = "http") -> tuple[bool, list[Any]]:
    """Return whether a connection reaches the pages, and the codes that are sent otherwise."""
    reached, sent = [], []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope)

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message.get("status") or message.get("code"))

    await NamedCookies(application)({"type": kind, "path": path, "headers": []}, receive, send)
    return bool(reached), sent


@pytest.mark.usefixtures("_away")
async def test_a_new_home_without_the_database_answers_probes_alone(new_process: Any) -> None:
    assert await connect("/jobs") == (False, [503, None])
    assert await connect("/ws/v1", "websocket") == (False, [1013])
    assert await connect("/healthz") == (True, [])
    assert await connect("/static/css/app.css") == (True, [])
    assert new_process.SESSION_COOKIE_NAME == "session"
