from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.fetching.servers import Answer, serving
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


@pytest.fixture
def site(allow: Any) -> Any:
    """Return a function that runs a server with an answer, and gives the address of its file."""

    @contextmanager
    def serve(answer: Answer) -> Iterator[str]:
        with serving(answer) as server:
            allow("127.0.0.1", server.port)
            yield f"http://127.0.0.1:{server.port}/people.csv"

    return serve
