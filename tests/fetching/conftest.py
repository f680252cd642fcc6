from typing import Any

import pytest

from tests.world import world  # noqa: F401  a fixture


@pytest.fixture
def allow(settings: Any) -> Any:
    """Return a function that lists a host and a port for fetches."""

    def add(host: str, port: int) -> None:
        settings.TRAINYARD_FETCH_ALLOW = settings.TRAINYARD_FETCH_ALLOW | {(host, port)}

    return add


@pytest.fixture
def fast_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up a source that sends nothing for a fifth of a second."""
    monkeypatch.setattr("jobs.sources.web.STALL_SECONDS", 0.2)
